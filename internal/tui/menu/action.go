package menu

import (
	"context"
	"fmt"
	"os"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// action is something that is done with a run. It returns what it says.
type action struct {
	does string
	text string // what to ask for a text; empty for none
	sure bool   // the user is asked again
	do   func(ctx context.Context, m *Menu, r *api.Run, text string) (string, error)
}

// actions returns what can be done with a run, its answers first.
func actions(r *api.Run) []action {
	list := []action{}
	if view.PromptID(r) != "" && (r.Request == nil || r.Request.Kind != agency.AsksDialog) {
		if r.Request != nil && r.Request.Kind == agency.AsksPermission {
			list = append(list, action{does: "allow it once", do: answer(agency.Allow)})
		} else {
			list = append(list, action{does: "reply", text: "your reply, an empty line for none", do: answer("")})
		}
		if r.Request != nil {
			list = append(list, action{does: "reject it", do: answer(agency.Deny)})
		}
	}
	return append(list,
		action{does: "read its screen", do: screen},
		action{does: "what it changed", do: changes},
		action{does: "why it has its status", do: why},
		action{does: "attach to its terminal", do: attach},
		action{does: "send a message", text: "the message, an empty line for none", do: send},
		action{does: "save its work in a snapshot", do: func(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
			_, err := m.o.Daemon.TakeSnapshot(ctx, api.RunRequest{Run: string(r.ID)})
			return r.Ref() + " is saved", err
		}},
		action{does: "stop it", sure: true, do: func(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
			_, err := m.o.Daemon.StopRun(ctx, api.RunRequest{Run: string(r.ID)})
			return r.Ref() + " is stopped", err
		}},
		action{does: "resume it", sure: true, do: func(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
			_, err := m.o.Daemon.ResumeRun(ctx, api.ResumeRunRequest{Run: string(r.ID), Env: m.o.Env, Config: m.o.Config})
			return r.Ref() + " continues", err
		}},
		action{does: "continue it in another mode", text: "terminal, headless or protocol, and behind it a task if it gets one; an empty line for none", do: func(ctx context.Context, m *Menu, r *api.Run, text string) (string, error) {
			_, err := m.o.Daemon.ResumeRun(ctx, page.ReadMode(string(r.ID), text, m.o.Env, m.o.Config))
			return r.Ref() + " continues in another mode", err
		}},
		action{does: "remove it", sure: true, do: func(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
			_, err := m.o.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: string(r.ID)})
			return r.Ref() + " is removed", err
		}},
	)
}

// answer returns the action that answers the very request that was shown: with a decision, or with
// the text.
func answer(decision agency.Decision) func(context.Context, *Menu, *api.Run, string) (string, error) {
	return func(ctx context.Context, m *Menu, r *api.Run, text string) (string, error) {
		resp, err := m.o.Daemon.AnswerRun(ctx, api.AnswerRunRequest{Run: string(r.ID), PromptID: view.PromptID(r), Decision: decision, Text: text})
		if err == nil && !resp.Confirmed {
			return "answered, but agency did not see the agent accept it", nil
		}
		return "answered", err
	}
}

func send(ctx context.Context, m *Menu, r *api.Run, text string) (string, error) {
	resp, err := m.o.Daemon.SendInput(ctx, api.SendInputRequest{Run: string(r.ID), Text: text})
	if err == nil && !resp.Confirmed {
		return "typed, but agency did not see the agent accept it", nil
	}
	return r.Ref() + " got the message", err
}

func screen(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
	resp, err := m.o.Daemon.ShowScreen(ctx, api.ShowScreenRequest{Run: string(r.ID)})
	var text strings.Builder
	for _, row := range resp.Screen.Rows {
		for i := range row {
			text.WriteString(row[i].Text)
		}
		text.WriteString("\n")
	}
	return strings.TrimRight(text.String(), "\n"), err
}

func changes(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
	resp, err := m.o.Daemon.DiffRun(ctx, api.DiffRunRequest{Run: string(r.ID), List: true})
	if err == nil && len(resp.List) == 0 {
		return "nothing has changed", nil
	}
	var text strings.Builder
	for i := range resp.List {
		f := &resp.List[i]
		_, _ = fmt.Fprintf(&text, "%s %s, %d lines added, %d deleted\n", f.Status, f.Path, f.Added, f.Deleted)
	}
	return text.String(), err
}

func why(ctx context.Context, m *Menu, r *api.Run, _ string) (string, error) {
	resp, err := m.o.Daemon.ExplainRun(ctx, api.RunRequest{Run: string(r.ID)})
	lines := []string{fmt.Sprintf("%s, by rule %d: %s", resp.Explanation.Status.Label, resp.Explanation.Rule, resp.Explanation.When)}
	for i := range resp.Explanation.Findings {
		if f := &resp.Explanation.Findings[i]; f.Decided {
			lines = append(lines, fmt.Sprintf("%s says: %s", f.Source, f.Says))
		}
	}
	return strings.Join(lines, "\n"), err
}

// attach gives the terminal to agency attach until the user detaches.
func attach(_ context.Context, m *Menu, r *api.Run, _ string) (string, error) {
	cmd := m.o.Command("attach", "--", string(r.ID))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return "back from " + r.Ref(), cmd.Run()
}
