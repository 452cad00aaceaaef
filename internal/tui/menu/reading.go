package menu

import (
	"context"
	"fmt"
	"strings"

	"agency/internal/api"
	"agency/internal/tui/about"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
)

// readings returns the actions that print a text about a run. What the run changed is in landing.
func (m *Menu) readings(r *api.Run) []action {
	d, run := &m.o.Daemon, string(r.ID)
	reading := func(does string, newestLast bool, read func(ctx context.Context) ([]string, error)) action {
		return action{does: does, do: func(ctx context.Context, _ string) (string, error) {
			lines, err := read(ctx)
			if err != nil {
				return "", err
			}
			return "", m.console.pages(ctx, lines, newestLast)
		}}
	}
	return []action{
		reading("read its screen", true, func(ctx context.Context) ([]string, error) { return screen(ctx, d, run) }),
		reading("why it has its status", false, func(ctx context.Context) ([]string, error) { return why(ctx, d, run) }),
		reading("the end of its log", true, func(ctx context.Context) ([]string, error) { return plainly(about.Log(ctx, d, run)) }),
		reading("the messages that it got, the newest first", false, func(ctx context.Context) ([]string, error) {
			return plainly(about.Messages(ctx, d, run, m.runs.names()))
		}),
		reading("what happened to it, the newest first", false, func(ctx context.Context) ([]string, error) { return plainly(about.Events(ctx, d, run)) }),
	}
}

// plainly returns lines without their styles.
func plainly(lines []cell.Line, err error) ([]string, error) {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text()
	}
	return texts, err
}

// screen returns the rows of the screen of a run that are not empty.
func screen(ctx context.Context, d *page.Daemon, run string) ([]string, error) {
	resp, err := d.ShowScreen(ctx, api.ShowScreenRequest{Run: run})
	lines := []string{}
	for _, row := range resp.Screen.Rows {
		if text := cell.Line(row).Text(); strings.TrimSpace(text) != "" {
			lines = append(lines, text)
		}
	}
	return lines, err
}

// why returns the rule that gives a run its status, and the evidence. Evidence that decided comes first.
func why(ctx context.Context, d *page.Daemon, run string) ([]string, error) {
	resp, err := d.ExplainRun(ctx, api.RunRequest{Run: run})
	if err != nil {
		return nil, err
	}
	e := &resp.Explanation
	decided, others := []string{fmt.Sprintf("%s, by rule %d: %s", e.Status.Label, e.Rule, e.When)}, []string{}
	for i := range e.Findings {
		switch f := &e.Findings[i]; {
		case f.Decided:
			decided = append(decided, fmt.Sprintf("decided by %s: %s", f.Source, f.Says))
		case f.Ignored != "":
			others = append(others, fmt.Sprintf("%s: %s; without effect: %s", f.Source, f.Says, f.Ignored))
		default:
			others = append(others, fmt.Sprintf("%s: %s", f.Source, f.Says))
		}
	}
	return append(decided, others...), nil
}
