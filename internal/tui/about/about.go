// Package about reads texts about a run: why it has its status, what it changed, its log, its messages and
// its events. It also reads the inbox of the user.
package about

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Inbox returns what waits for the user to read it: the alerts that neither the user nor an agent has
// acknowledged, and the messages of agents.
func Inbox(ctx context.Context, d *page.Daemon) ([]api.Alert, []agency.Message, error) {
	alerts, err := d.ListAlerts(ctx, api.ListAlertsRequest{})
	if err != nil {
		return nil, nil, err
	}
	messages, err := d.ListMessages(ctx, api.ListMessagesRequest{Recipient: agency.User})
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(alerts.Alerts, func(a api.Alert) bool { return a.AckedAt != nil }),
		slices.DeleteFunc(messages.Messages, func(m agency.Message) bool { return m.From == agency.Daemon }), nil // the messages of the daemon repeat the alerts
}

// How much of a run is read.
const (
	logLines   = 500
	mostEvents = 10_000
)

// Log returns the end of the log of a run.
func Log(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
	resp, err := d.ShowOutput(ctx, api.ShowOutputRequest{Run: run, Lines: logLines})
	lines := make([]cell.Line, 0, len(resp.Lines))
	for _, line := range resp.Lines {
		lines = append(lines, cell.Of(cell.Plain, line))
	}
	return lines, err
}

// Why returns the rule and the evidence of the status of a run.
func Why(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
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

// Files returns the files that a run changed.
func Files(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
	resp, err := d.DiffRun(ctx, api.DiffRunRequest{Run: run, List: true})
	if err != nil || len(resp.List) == 0 {
		return nil, err
	}
	lines := []cell.Line{}
	for i := range resp.List {
		f := &resp.List[i]
		size := fmt.Sprintf("%6s %6s", fmt.Sprintf("+%d", f.Added), fmt.Sprintf("-%d", f.Deleted))
		if f.Binary {
			size = fmt.Sprintf("%13s", "binary")
		}
		name := f.Path
		if f.From != "" {
			name = f.From + " → " + f.Path
		}
		lines = append(lines, cell.Of(cell.Bold, f.Status+" ").Add(cell.Dim, size+"  ").Add(cell.Plain, name))
	}
	if left := resp.LeftOut.Files; left > 0 {
		lines = append(lines, cell.Of(cell.Dim, fmt.Sprintf("and %d too large to show", left)))
	}
	return lines, nil
}

// Messages returns the messages that a run got, the newest first. names has the names of runs by their ids.
func Messages(ctx context.Context, d *page.Daemon, run string, names map[string]string) ([]cell.Line, error) {
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

// Events returns the events of a run, the newest first.
func Events(ctx context.Context, d *page.Daemon, run string) ([]cell.Line, error) {
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
		lines = append(lines, cell.Of(cell.Dim, e.At.Local().Format("01-02 15:04:05 ")).Add(cell.Bold, string(e.Type)).Add(cell.Dim, " "+view.Facts(e.Data)))
	}
	return lines, nil
}
