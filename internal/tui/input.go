package tui

import (
	"cmp"
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/cell"
	"agency/internal/tui/field"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
)

// typing is what the text is for that the user types.
type typing int

const (
	nothing   typing = iota
	filtering        // the list
	replying         // to the run in about
	sending          // to the runs in targets
	moving           // the runs in targets, to another mode
	finding          // a text in the pane
)

// input is the part of the board on which the user types. The board embeds it for Typing, Type and Paste.
type input struct {
	desk    *page.Desk
	list    *list.List
	do      *actions
	eye     *eye
	replies *replies

	typing  typing
	field   field.Field
	about   api.Run           // the run that gets the reply, as it was shown
	targets []api.Run         // the runs that get the message, or the other mode
	sought  string            // the text that was searched for last
	unsent  map[typing]string // the texts that the daemon has not taken: the user finds them in the field again
}

// Typing implements page.Page.
func (in *input) Typing(width int) cell.Line {
	switch in.typing {
	case filtering:
		return in.field.Draw("/", width)
	case replying:
		return in.field.Draw("reply to "+in.about.Ref()+"> ", width)
	case sending:
		return in.field.Draw("send to "+named(in.targets)+"> ", width)
	case moving:
		return in.field.Draw("mode of "+named(in.targets)+"> ", width)
	case finding:
		return in.field.Draw("find> ", width)
	case nothing:
	}
	return nil
}

// Type implements page.Page.
func (in *input) Type(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); name {
	case "esc":
		if in.typing == filtering {
			in.list.Filter("")
		}
		in.typing = nothing
	case "enter":
		return in.enter()
	case "up", "down":
		if in.typing == filtering {
			in.list.Move(map[string]int{"up": -1, "down": 1}[name])
		}
	default:
		in.field.Press(key)
		in.typed()
	}
	return nil
}

// enter ends the typing, and does what the text is for.
func (in *input) enter() tea.Cmd {
	typed, text := in.typing, in.field.Text()
	in.typing = nothing
	if typed == finding {
		return in.find(text)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	switch typed {
	case replying:
		in.unsent[replying] = text
		return in.replies.reply(&in.about, text)
	case sending:
		return in.send(text)
	case moving:
		return in.move(text)
	case nothing, filtering, finding:
	}
	return nil
}

// Paste implements page.Page.
func (in *input) Paste(text string) {
	in.field.Insert(text)
	in.typed()
}

// typed filters the list while the user types a filter.
func (in *input) typed() {
	if in.typing == filtering {
		in.list.Filter(in.field.Text())
	}
}

// startFilter begins a filter of the list.
func (in *input) startFilter() { in.typing, in.field = filtering, field.New(in.list.Filtered()) }

// startFind begins the search for a text in the pane.
func (in *input) startFind() { in.typing, in.field = finding, field.New("") }

// find scrolls the pane to the next row with a text. An empty text stands for that of the last search.
func (in *input) find(text string) tea.Cmd {
	if in.sought = cmp.Or(text, in.sought); in.sought == "" {
		return nil
	}
	return in.eye.find(in.sought)
}

// startReply begins a reply in the words of the user.
func (in *input) startReply(string) tea.Cmd {
	r, why := in.replies.answerable()
	switch {
	case r == nil:
		return in.desk.Say(why)
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return in.desk.Say("it asks for permission: " + in.desk.Key("allow") + " allows, " + in.desk.Key("reject") + " rejects")
	}
	in.typing, in.field, in.about = replying, field.New(in.unsent[replying]), *r
	return nil
}

// startSend begins a message to the marked runs, or to the one at the cursor.
func (in *input) startSend(string) tea.Cmd {
	runs := in.list.Targets()
	if len(runs) == 0 {
		return in.do.none()
	}
	in.targets, in.typing, in.field = runs, sending, field.New(in.unsent[sending])
	return nil
}

// send sends a message to the targets.
func (in *input) send(text string) tea.Cmd {
	in.unsent[sending] = text
	return in.do.begin(&task{does: "sending to", done: "got the message", message: text, runs: in.targets, act: func(ctx context.Context, run string) (string, error) {
		resp, err := in.desk.Daemon.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
		if err == nil && !resp.Confirmed {
			return "agency typed the message, but did not see the agent accept it", nil
		}
		return "", err
	}})
}

// taken forgets a text that the daemon has taken, unless another text is kept by now.
func (in *input) taken(by typing, text string) {
	if in.unsent[by] == text {
		delete(in.unsent, by)
	}
}

// startMove begins the change of mode of the marked runs, or of the one at the cursor.
func (in *input) startMove(string) tea.Cmd {
	runs := in.list.Targets()
	if len(runs) == 0 {
		return in.do.none()
	}
	in.targets, in.typing, in.field = runs, moving, field.New(string(page.OtherMode(runs[0].Mode)))
	return nil
}

// move continues the targets in the mode that the user typed.
func (in *input) move(text string) tea.Cmd {
	return in.do.each(in.targets, "changing the mode of", "moved to another mode", func(ctx context.Context, run string) (string, error) {
		return page.ResumeRun(ctx, &in.desk.Daemon, page.ReadMode(run, text, in.desk.Env, in.desk.Config))
	})
}
