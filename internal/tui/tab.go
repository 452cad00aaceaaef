package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

type textMsg struct {
	turn  int
	lines []cell.Line
	err   error
}

// diffBytes and logLines are how much of a run is read for a tab.
const (
	diffBytes = 512 << 10
	logLines  = 500
)

// show changes the tab of the pane, and reads it again when it is the present one.
func (m *Model) show(tab preview.Tab) tea.Cmd {
	m.hidden = false
	m.pane.Clear(tab)
	m.eye.run = ""
	return nil
}

// read returns the text of the present tab of a run.
func (m *Model) read(turn int) tea.Cmd {
	ctx, d, run, tab := m.eye.ctx, m.o.Daemon, string(m.eye.run), m.eye.tab
	return func() tea.Msg {
		var lines []cell.Line
		var err error
		switch tab {
		case preview.Diff:
			lines, err = diffLines(ctx, d, run)
		case preview.Why:
			lines, err = whyLines(ctx, d, run)
		default:
			var resp api.ShowOutputResponse
			resp, err = d.ShowOutput(ctx, api.ShowOutputRequest{Run: run, Lines: logLines})
			for _, line := range resp.Lines {
				lines = append(lines, cell.Of(cell.Plain, line))
			}
		}
		return textMsg{turn, lines, err}
	}
}

func (m *Model) hasRead(msg textMsg) tea.Cmd {
	if msg.turn != m.eye.turn || m.eye.run == "" {
		return nil
	}
	if msg.err != nil {
		return m.sayError(msg.err)
	}
	if len(msg.lines) == 0 {
		msg.lines = []cell.Line{cell.Of(cell.Dim, " (nothing)")}
	}
	m.pane.ShowText(m.eye.run, m.eye.tab, msg.lines)
	return nil
}

// diffLines returns the files that a run changed, and its patch in colours.
func diffLines(ctx context.Context, d Daemon, run string) ([]cell.Line, error) {
	resp, err := d.DiffRun(ctx, api.DiffRunRequest{Run: run, MaxBytes: diffBytes})
	if err != nil {
		return nil, err
	}
	lines := []cell.Line{}
	for i := range resp.Files {
		lines = append(lines, cell.Of(cell.Bold, term.SafeLine(resp.Files[i].Path)))
	}
	if len(lines) > 0 {
		lines = append(lines, cell.Of(cell.Plain, ""))
	}
	for line := range strings.Lines(resp.Patch) {
		style := cell.Plain
		switch {
		case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			style = cell.Bold
		case strings.HasPrefix(line, "@@"):
			style = cell.Coloured(view.Cyan)
		case strings.HasPrefix(line, "+"):
			style = cell.Coloured(view.Green)
		case strings.HasPrefix(line, "-"):
			style = cell.Coloured(view.Red)
		}
		lines = append(lines, cell.Of(style, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")))
	}
	if resp.Truncated {
		lines = append(lines, cell.Of(cell.Dim, "… there is more: agency diff "+run))
	}
	return lines, nil
}

// whyLines returns the rule and the evidence of a status.
func whyLines(ctx context.Context, d Daemon, run string) ([]cell.Line, error) {
	resp, err := d.ExplainRun(ctx, api.RunRequest{Run: run})
	if err != nil {
		return nil, err
	}
	e := &resp.Explanation
	lines := []cell.Line{cell.Of(cell.Bold, fmt.Sprintf("%s %s", e.Status.Label.Mark(), e.Status.Label)), cell.Of(cell.Plain, fmt.Sprintf("rule %d: %s", e.Rule, e.When)), cell.Of(cell.Plain, "")}
	for i := range e.Findings {
		f := &e.Findings[i]
		mark, style := "  ", cell.Plain
		if f.Decided {
			mark, style = "* ", cell.Bold
		}
		at := "-"
		if !f.At.IsZero() {
			at = duration.Short(time.Duration(f.AgeMS) * time.Millisecond)
		}
		lines = append(lines, cell.Of(style, fmt.Sprintf("%s%-9s %-7s %4s  %s", mark, f.Source, f.Trust, at, term.SafeLine(f.Says))))
		if f.Ignored != "" {
			lines = append(lines, cell.Of(cell.Dim, "    ignored: "+term.SafeLine(f.Ignored)))
		}
	}
	return lines, nil
}
