package tui

import (
	"bytes"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
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
func (b *board) answerable() (*api.Run, string) {
	r := b.list.Chosen()
	switch {
	case r == nil:
		return nil, "there is no run"
	case view.PromptID(r) == "":
		return nil, r.Ref() + " asks nothing"
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		return nil, "only you can answer this dialog, in its terminal: enter"
	case !b.takes():
		return nil, "the request has only just appeared: read it, and press the key again"
	default:
		return r, ""
	}
}

func (b *board) allow(string) tea.Cmd {
	r, why := b.answerable()
	switch {
	case r == nil:
		return b.desk.Say(why)
	case r.Request == nil || r.Request.Kind != agency.AsksPermission:
		return b.desk.Say(r.Ref() + " asks a question: i replies")
	}
	return b.answer(r, api.AnswerRunRequest{Decision: agency.Allow}, "allowed")
}

func (b *board) reject(string) tea.Cmd {
	r, why := b.answerable()
	switch {
	case r == nil:
		return b.desk.Say(why)
	case r.Request == nil:
		return b.desk.Say(r.Ref() + " asks in its own words: i replies")
	}
	return b.answer(r, api.AnswerRunRequest{Decision: agency.Deny}, "rejected")
}

// choose answers with an option that the terminal of the run shows.
func (b *board) choose(key string) tea.Cmd {
	r, why := b.answerable()
	if r == nil {
		return b.desk.Say(why)
	}
	options, n := b.options(), int(key[0]-'1')
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return b.desk.Say("it asks for permission: a allows, r rejects")
	case n >= len(options):
		return b.desk.Say("the screen shows no option " + key + ": i replies")
	}
	return b.answer(r, api.AnswerRunRequest{Text: options[n]}, "answered: "+options[n])
}

// options returns the options that the terminal of the run under the cursor shows; none for a
// permission, which has keys of its own.
func (b *board) options() []string {
	r := b.list.Chosen()
	if r == nil || b.pane.Run != r.ID || r.Request == nil || r.Request.Kind != agency.AsksQuestion {
		return nil
	}
	return preview.Options(&b.pane.Screen)
}

func (b *board) startReply(string) tea.Cmd {
	r, why := b.answerable()
	switch {
	case r == nil:
		return b.desk.Say(why)
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return b.desk.Say("it asks for permission: a allows, r rejects")
	}
	b.typing, b.field, b.about = replying, field.New(""), *r
	return nil
}

func (b *board) reply(r *api.Run, text string) tea.Cmd {
	return b.answer(r, api.AnswerRunRequest{Text: text}, "answered: "+text)
}

// answer sends a reply to the very request that was shown.
func (b *board) answer(r *api.Run, req api.AnswerRunRequest, reply string) tea.Cmd {
	req.Run, req.PromptID = string(r.ID), view.PromptID(r)
	run, ctx, d := *r, b.desk.Ctx, b.desk.Daemon
	return tea.Batch(b.desk.Say("answering "+r.Ref()+" …"), func() tea.Msg {
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

func (b *board) answered(msg answeredMsg) tea.Cmd {
	ref := msg.run.Ref()
	switch {
	case msg.err != nil && agency.IsCode(msg.err, agency.CodeInvalidState) && msg.now != view.PromptID(&msg.run):
		return tea.Batch(b.desk.Say(ref+": already answered"), b.changed())
	case msg.err != nil:
		return b.desk.Fail(msg.err)
	case !msg.resp.Confirmed:
		return b.desk.Say(ref + ": " + msg.reply + ", but its agent was not seen to take it")
	default:
		return b.desk.Say(ref + ": " + msg.reply)
	}
}

// attach gives the terminal to agency attach, which gives it back when the user detaches.
func (b *board) attach(string) tea.Cmd {
	r := b.list.Chosen()
	if r == nil {
		return b.desk.Say("there is no run")
	}
	return b.exec("attach", "--", string(r.ID))
}

// exec runs a command of agency on the terminal. What it writes to its standard error is said when
// it fails.
func (b *board) exec(args ...string) tea.Cmd {
	cmd := b.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		if err == nil {
			return changedMsg{}
		}
		for line := range strings.Lines(said.String()) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "agency: error: "); ok {
				return page.Acted{Err: agency.Errorf(agency.CodeInternal, "%s", text)}
			}
		}
		return page.Acted{Err: err}
	})
}
