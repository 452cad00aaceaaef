package menu

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// run prints a run with its actions and does what the user chooses, until the user goes back. The
// actions keep their numbers until the run changes: then it is printed again.
func (m *Menu) run(ctx context.Context, id agency.RunID) error {
	told, actions := "", []action{}
	for {
		r, err := m.runs.find(ctx, id)
		if err != nil {
			return m.console.fail(err)
		}
		now := strings.Join([]string{string(r.State), r.Status.String(), view.PromptID(r), view.GroupOf(r).Title()}, " ")
		var c choice
		if now == told {
			c, err = m.console.pick(ctx, &question{what: "number of an action", rows: len(actions), letters: inside})
		} else {
			told = now
			m.runs.isNews(r)
			m.tell(r)
			actions = m.actions(r, m.answers(ctx, r))
			c, err = m.console.choose(ctx, "number of an action", titles(actions))
		}
		switch {
		case err != nil || c.letter == back:
			return err
		case c.letter == again:
			told = ""
			continue
		}
		a := &actions[c.rows[0]]
		done, err := m.console.do(ctx, r.Ref(), a)
		if err != nil || done && a.leaves {
			return err
		}
	}
}

// tell prints what a run does or asks. Each further line of a request begins with its number, so that no
// text of an agent looks like a row of the menu.
func (m *Menu) tell(r *api.Run) {
	q := r.Request
	if q == nil || q.Text == "" && q.Tool == "" {
		m.console.say("%s", runText(r, false))
		if r.Status == agency.Waiting && view.Summary(r) == "" {
			m.console.say("its turn ended, and it did not say what it needs")
		}
		return
	}
	m.console.say("%s, %s", r.Ref(), r.Status)
	who := "it asks"
	if q.Subagent != "" {
		who = "its subagent " + q.Subagent + " asks"
	}
	text := q.Text
	if q.Tool != "" {
		text = strings.TrimSuffix(q.Tool+": "+q.Text, ": ")
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	m.console.say("%s: %s", who, lines[0])
	for i, line := range lines[1:] {
		m.console.say("line %d: %s", i+2, line)
	}
	if q.Kind == agency.AsksDialog {
		m.console.say("only you can answer this dialog, in its terminal")
	} else if q.Kind == agency.AsksPermission && q.Cut() {
		m.console.say("agency keeps only the beginning of what it asks for; its terminal has the rest")
	}
}

// answers returns the actions that answer a run. They answer only the request that r has.
func (m *Menu) answers(ctx context.Context, r *api.Run) []action {
	q := r.Request
	if view.PromptID(r) == "" || r.State.Final() || q != nil && q.Kind == agency.AsksDialog {
		return nil
	}
	answer := func(does string, decision agency.Decision, text string) action {
		return action{does: does, leaves: true, do: func(ctx context.Context, _ string) (string, error) { return m.answer(ctx, r, decision, text) }}
	}
	actions := []action{}
	switch {
	case q != nil && q.Kind == agency.AsksPermission && q.Cut():
		actions = append(actions, action{does: "attach to its terminal, to read all of it", do: func(context.Context, string) (string, error) { return m.attach(r) }})
	case q != nil && q.Kind == agency.AsksPermission:
		actions = append(actions, answer("allow it once", agency.Allow, ""))
	default:
		for _, option := range m.options(ctx, r) {
			actions = append(actions, answer("answer: "+option, "", option))
		}
		actions = append(actions, action{does: "reply in your own words", text: "your reply", leaves: true, do: func(ctx context.Context, text string) (string, error) {
			return m.answer(ctx, r, "", text)
		}})
	}
	switch {
	case q == nil:
		return actions
	case q.Kind == agency.AsksPermission:
		return append(actions, answer("reject it", agency.Deny, ""))
	default:
		return append(actions, answer("give no answer", agency.Deny, ""))
	}
}

// options returns the options of a question: those that the agent names, or else those on its screen.
func (m *Menu) options(ctx context.Context, r *api.Run) []string {
	if r.Request == nil {
		return nil
	}
	if len(r.Request.Options) > 0 {
		return r.Request.Options
	}
	resp, err := m.o.Daemon.ShowScreen(ctx, api.ShowScreenRequest{Run: string(r.ID)})
	if err != nil {
		return nil // a reply works without them
	}
	return preview.Options(&resp.Screen)
}

// answer answers the request of a run.
func (m *Menu) answer(ctx context.Context, r *api.Run, decision agency.Decision, text string) (string, error) {
	resp, err := m.o.Daemon.AnswerRun(ctx, api.AnswerRunRequest{Run: string(r.ID), PromptID: view.PromptID(r), Decision: decision, Text: text})
	if err == nil && !resp.Confirmed {
		return r.Ref() + " is answered, but agency did not see the agent accept it", nil
	}
	return r.Ref() + " is answered", err
}

// attach gives the terminal to agency attach until the user detaches. The menu prints what that command
// writes to its standard error.
func (m *Menu) attach(r *api.Run) (string, error) {
	cmd := m.o.Command("attach", "--", string(r.ID))
	said := &speaker{console: m.console, run: r}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, said
	if err := cmd.Run(); err != nil {
		if said.rows > 0 {
			return "", nil
		}
		return "", agency.Errorf(agency.CodeInvalidState, "the terminal of %s cannot be shown", r.Ref()).WithHint("agency logs %s", r.Ref())
	}
	return "back from " + r.Ref(), nil
}

// speaker prints what a command of agency writes to its standard error.
type speaker struct {
	console *console
	run     *api.Run // the command names it by its id
	half    []byte   // a line that has not ended yet
	rows    int      // printed so far
}

// errorLine finds what a line of agency tells, without the name of the program and the code of an error.
var errorLine = regexp.MustCompile(`^(?:agency: )?(?:hint: )?(.*?)(?: \[E_[A-Z_]+\])?$`)

// Write implements io.Writer.
func (s *speaker) Write(p []byte) (int, error) {
	s.half = append(s.half, p...)
	for {
		line, rest, ok := bytes.Cut(s.half, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		s.console.say("%s", strings.ReplaceAll(errorLine.ReplaceAllString(string(line), "$1"), string(s.run.ID), s.run.Ref()))
		s.half = rest
		s.rows++
	}
}
