package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

type textMsg struct {
	turn  int
	lines []cell.Line
	err   error
}

// logLines and mostEvents are how much of a run is read for a tab.
const (
	logLines   = 500
	mostEvents = 10_000
)

// show changes the tab of the pane, and reads it again when it is the present one.
func (b *board) show(tab preview.Tab) tea.Cmd {
	b.hidden = false
	b.pane.Clear(tab)
	b.eye.run = ""
	return nil
}

// read returns the text of the present tab of a run.
func (b *board) read(turn int) tea.Cmd {
	names := b.list.Names()
	ctx, d, run, tab := b.eye.ctx, &b.desk.Daemon, string(b.eye.run), b.eye.tab
	return func() tea.Msg {
		var lines []cell.Line
		var err error
		switch tab {
		case preview.Why:
			lines, err = whyLines(ctx, d, run)
		case preview.Messages:
			lines, err = messageLines(ctx, d, run, names)
		case preview.Timeline:
			lines, err = eventLines(ctx, d, run)
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

func (b *board) hasRead(msg textMsg) tea.Cmd {
	if msg.turn != b.eye.turn || b.eye.run == "" {
		return nil
	}
	if msg.err != nil {
		return b.desk.Fail(msg.err)
	}
	if len(msg.lines) == 0 {
		msg.lines = []cell.Line{cell.Of(cell.Dim, " (nothing)")}
	}
	b.pane.ShowText(b.eye.run, b.eye.tab, msg.lines)
	return nil
}

// whyLines returns the rule and the evidence of a status.
func whyLines(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
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

// messageLines returns the messages that a run got, the newest first.
func messageLines(ctx context.Context, d *page.Daemon, run string, names map[string]string) ([]cell.Line, error) {
	resp, err := d.ListMessages(ctx, api.ListMessagesRequest{Recipient: run, All: true})
	if err != nil {
		return nil, err
	}
	lines := []cell.Line{}
	for i := range slices.Backward(resp.Messages) {
		m := &resp.Messages[i]
		state := "waits"
		if m.DeliveredAt != nil {
			state = "delivered"
		}
		if m.AckedAt != nil {
			state = "read"
		}
		lines = append(lines, cell.Of(cell.Bold, m.CreatedAt.Local().Format("01-02 15:04")).Add(cell.Coloured(view.Cyan), " "+cmp.Or(names[m.From], m.From)+" ").Add(cell.Dim, m.Type+", "+state))
		for line := range strings.Lines(view.MessageText(m)) {
			lines = append(lines, cell.Of(cell.Plain, "  "+strings.TrimSuffix(line, "\n")))
		}
	}
	return lines, nil
}

// eventLines returns what the record has of a run, the newest first.
func eventLines(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
	events, since := []agency.Event{}, int64(0)
	for range mostEvents / 1000 {
		resp, err := d.ListEvents(ctx, api.ListEventsRequest{Run: run, Since: since, Limit: 1000})
		if err != nil {
			return nil, err
		}
		events = append(events, resp.Events...)
		if len(resp.Events) < 1000 {
			break
		}
		since = events[len(events)-1].Seq
	}
	lines := []cell.Line{}
	for _, e := range slices.Backward(events) {
		lines = append(lines, cell.Of(cell.Dim, e.At.Local().Format("01-02 15:04:05 ")).Add(cell.Bold, string(e.Type)).Add(cell.Dim, " "+string(e.Data)))
	}
	return lines, nil
}
