package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// answeredMsg is the end of an answer to a run.
type answeredMsg struct {
	run   api.Run // as it was when it was answered
	reply string  // in words
	typed string  // the reply, if the user typed it
	resp  api.AnswerRunResponse
	err   error
	now   string // the prompt that the run waits for, after an error
}

// replies decides whether a key replies to the request of the run at the cursor, and sends the
// reply.
type replies struct {
	desk *page.Desk
	list *list.List
	eye  *eye
	// whole reports whether all of the request is on the screen.
	whole func() bool

	// The request that is shown: the run and its id, and when it appeared.
	asking string
	since  time.Time
}

// notice notes when the request at the cursor changes: keys answer it only after it has
// been shown for a while.
func (p *replies) notice(shown bool) tea.Cmd {
	asking := ""
	if r := p.list.Chosen(); r != nil && view.PromptID(r) != "" && shown {
		asking = string(r.ID) + " " + view.PromptID(r)
	}
	if asking == p.asking {
		return nil
	}
	p.asking, p.since = asking, p.desk.Now()
	if asking == "" {
		return nil
	}
	return p.desk.Later(deadKeys, liveMsg{})
}

// takes reports whether a key answers the shown request now.
func (p *replies) takes() bool { return p.asking != "" && p.desk.Now().Sub(p.since) >= deadKeys }

// answerable returns the run at the cursor if a key can answer its request, or else the reason why not.
func (p *replies) answerable() (*api.Run, string) {
	r := p.list.Chosen()
	switch {
	case r == nil:
		return nil, "there is no run"
	case view.PromptID(r) == "":
		return nil, r.Ref() + " asks nothing: " + p.desk.Key("send") + " sends it a message"
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		return nil, "only you can answer this dialog, in its terminal: " + p.desk.Key("attach")
	case !p.takes():
		return nil, "the request has only just appeared: read it, and press the key again"
	default:
		return r, ""
	}
}

// allow permits what the run at the cursor asks for.
func (p *replies) allow(string) tea.Cmd {
	r, why := p.answerable()
	switch {
	case r == nil:
		return p.desk.Say(why)
	case r.Request == nil || r.Request.Kind != agency.AsksPermission:
		return p.desk.Say(r.Ref() + " asks a question: " + p.desk.Key("reply") + " replies")
	case !p.whole():
		return p.desk.Say("not all of the request is seen: " + p.desk.Key("zoom") + " shows more, " + p.desk.Key("attach") + " its terminal")
	}
	return p.answer(r, api.AnswerRunRequest{Decision: agency.Allow}, answeredMsg{reply: "allowed"})
}

// reject refuses what the run at the cursor asks for, or gives no answer to its question.
func (p *replies) reject(string) tea.Cmd {
	r, why := p.answerable()
	switch {
	case r == nil:
		return p.desk.Say(why)
	case r.Request == nil:
		return p.desk.Say(r.Ref() + " asks in its own words: " + p.desk.Key("reply") + " replies")
	}
	return p.answer(r, api.AnswerRunRequest{Decision: agency.Deny}, answeredMsg{reply: "rejected"})
}

// choose answers with an option that the terminal of the run shows.
func (p *replies) choose(key string) tea.Cmd {
	r, why := p.answerable()
	if r == nil {
		return p.desk.Say(why)
	}
	options, n := p.options(), int(key[0]-'1')
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return p.desk.Say("it asks for permission: " + p.desk.Key("allow") + " allows, " + p.desk.Key("reject") + " rejects")
	case !p.whole():
		return p.desk.Say("not all of the question is seen: " + p.desk.Key("zoom") + " shows more, " + p.desk.Key("attach") + " its terminal")
	case n >= len(options):
		return p.desk.Say("there is no option " + key + ": " + p.desk.Key("reply") + " replies")
	}
	return p.answer(r, api.AnswerRunRequest{Text: options[n]}, answeredMsg{reply: "answered: " + options[n]})
}

// options returns the options of the question of the run at the cursor: those that the agent names or,
// if it names none, those that its terminal shows. A permission has other keys, and no options.
func (p *replies) options() []string {
	r := p.list.Chosen()
	switch {
	case r == nil || r.Request == nil || r.Request.Kind != agency.AsksQuestion:
		return nil
	case len(r.Request.Options) > 0:
		return r.Request.Options
	case p.eye.pane.Run != r.ID:
		return nil
	default:
		return preview.Options(&p.eye.pane.Screen)
	}
}

// reply answers a run in the words of the user.
func (p *replies) reply(r *api.Run, text string) tea.Cmd {
	return p.answer(r, api.AnswerRunRequest{Text: text}, answeredMsg{reply: "answered: " + text, typed: text})
}

// answer sends an answer to the request of a run, and ends as msg. The daemon refuses the answer if the run
// asks something else by now.
func (p *replies) answer(r *api.Run, req api.AnswerRunRequest, msg answeredMsg) tea.Cmd {
	req.Run, req.PromptID = string(r.ID), view.PromptID(r)
	ctx, d := p.desk.Ctx, p.desk.Daemon
	msg.run = *r
	return tea.Batch(p.desk.Say("answering "+r.Ref()+" …"), func() tea.Msg {
		if msg.resp, msg.err = d.AnswerRun(ctx, req); msg.err != nil {
			if resp, err := d.ListRuns(ctx, api.ListRunsRequest{Run: req.Run, Fields: fields()}); err == nil && len(resp.Runs) == 1 && !resp.Runs[0].State.Final() {
				msg.now = view.PromptID(&resp.Runs[0])
			} else {
				msg.now = req.PromptID // unknown, or the request ended unanswered, with the agent
			}
		}
		return msg
	})
}
