package tui

import (
	"bytes"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

type answeredMsg struct {
	run   api.Run // as it was when it was answered
	reply string
	resp  api.AnswerRunResponse
	err   error
	now   string // the prompt that the run waits for, after an error
}

// answerable returns the run under the cursor when its request can be answered, or else why not.
func (m *Model) answerable() (*api.Run, string) {
	r := m.list.Chosen()
	switch {
	case r == nil:
		return nil, "there is no run"
	case view.PromptID(r) == "":
		return nil, r.Ref() + " asks nothing"
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		return nil, "only you can answer this dialog, in its terminal: enter"
	case !m.takes():
		return nil, "the request has only just appeared: read it, and press the key again"
	default:
		return r, ""
	}
}

func (m *Model) allow(string) tea.Cmd {
	r, why := m.answerable()
	switch {
	case r == nil:
		return m.say(why)
	case r.Request == nil || r.Request.Kind != agency.AsksPermission:
		return m.say(r.Ref() + " asks a question: i replies")
	}
	return m.answer(r, api.AnswerRunRequest{Decision: agency.Allow}, "allowed")
}

func (m *Model) reject(string) tea.Cmd {
	r, why := m.answerable()
	switch {
	case r == nil:
		return m.say(why)
	case r.Request == nil:
		return m.say(r.Ref() + " asks in its own words: i replies")
	}
	return m.answer(r, api.AnswerRunRequest{Decision: agency.Deny}, "rejected")
}

// choose answers with an option that the terminal of the run shows.
func (m *Model) choose(key string) tea.Cmd {
	r, why := m.answerable()
	if r == nil {
		return m.say(why)
	}
	options, n := m.options(), int(key[0]-'1')
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return m.say("it asks for permission: a allows, r rejects")
	case n >= len(options):
		return m.say("the screen shows no option " + key + ": i replies")
	}
	return m.answer(r, api.AnswerRunRequest{Text: options[n]}, "answered: "+options[n])
}

// options returns the options that the terminal of the run under the cursor shows; none for a
// permission, which has keys of its own.
func (m *Model) options() []string {
	r := m.list.Chosen()
	if r == nil || m.pane.Run != r.ID || r.Request == nil || r.Request.Kind != agency.AsksQuestion {
		return nil
	}
	return preview.Options(&m.pane.Screen)
}

func (m *Model) startReply(string) tea.Cmd {
	r, why := m.answerable()
	switch {
	case r == nil:
		return m.say(why)
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return m.say("it asks for permission: a allows, r rejects")
	}
	m.mode, m.field, m.about = replying, field.New(""), *r
	return nil
}

func (m *Model) reply(r *api.Run, text string) tea.Cmd {
	return m.answer(r, api.AnswerRunRequest{Text: text}, "answered: "+text)
}

// answer sends a reply to the very request that was shown.
func (m *Model) answer(r *api.Run, req api.AnswerRunRequest, reply string) tea.Cmd {
	req.Run, req.PromptID = string(r.ID), view.PromptID(r)
	run, ctx, d := *r, m.ctx, m.o.Daemon
	return tea.Batch(m.say("answering "+r.Ref()+" …"), func() tea.Msg {
		msg := answeredMsg{run: run, reply: reply}
		if msg.resp, msg.err = d.AnswerRun(ctx, req); msg.err != nil {
			if resp, err := d.ListRuns(ctx, api.ListRunsRequest{Run: req.Run, Fields: fields()}); err == nil && len(resp.Runs) == 1 {
				msg.now = view.PromptID(&resp.Runs[0])
			} else {
				msg.now = req.PromptID // unknown
			}
		}
		return msg
	})
}

func (m *Model) answered(msg answeredMsg) tea.Cmd {
	ref := msg.run.Ref()
	switch {
	case msg.err != nil && agency.IsCode(msg.err, agency.CodeInvalidState) && msg.now != view.PromptID(&msg.run):
		return tea.Batch(m.say(ref+": already answered"), m.changed())
	case msg.err != nil:
		return m.sayError(msg.err)
	case !msg.resp.Confirmed:
		return m.say(ref + ": " + msg.reply + ", but its agent was not seen to take it")
	default:
		return m.say(ref + ": " + msg.reply)
	}
}

// attach gives the terminal to agency attach, which gives it back when the user detaches.
func (m *Model) attach(string) tea.Cmd {
	r := m.list.Chosen()
	if r == nil {
		return m.say("there is no run")
	}
	return m.exec("attach", "--", string(r.ID))
}

// exec runs a command of agency on the terminal. What it writes to its standard error is said when
// it fails.
func (m *Model) exec(args ...string) tea.Cmd {
	cmd := m.o.Command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		if err == nil {
			return changedMsg{}
		}
		for line := range strings.Lines(said.String()) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "agency: error: "); ok {
				return actedMsg{err: agency.Errorf(agency.CodeInternal, "%s", text)}
			}
		}
		return actedMsg{err: err}
	})
}
