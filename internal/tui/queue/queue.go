// Package queue is the screen of the landing queues.
package queue

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Page is the landing queues of all repositories.
type Page struct {
	page.Quiet

	desk   *page.Desk
	resp   api.QueueResponse
	loaded bool
	cursor page.Cursor
}

type queueMsg struct {
	resp api.QueueResponse
	err  error
}

// New returns the landing queues.
func New(desk *page.Desk) *Page { return &Page{desk: desk} }

// Title implements page.Page.
func (p *Page) Title() string { return fmt.Sprintf("landing queues %d", len(p.resp.Entries)) }

// Open implements page.Page.
func (p *Page) Open() tea.Cmd {
	d, ctx := &p.desk.Daemon, p.desk.Ctx
	return func() tea.Msg {
		resp, err := d.ListQueue(ctx, api.ListQueueRequest{})
		return queueMsg{resp, err}
	}
}

// Changed implements page.Page.
func (p *Page) Changed() tea.Cmd { return p.Open() }

// Update implements page.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	list, ok := msg.(queueMsg)
	if !ok {
		return nil
	}
	if list.err != nil {
		return p.desk.Fail(list.err)
	}
	was := int64(0)
	if e := p.chosen(); e != nil {
		was = e.Entry.Seq
	}
	p.resp, p.loaded = list.resp, true
	for i := range p.resp.Entries {
		if p.resp.Entries[i].Entry.Seq == was {
			p.cursor.At = i
		}
	}
	p.cursor.Keep(len(p.resp.Entries))
	return nil
}

func (p *Page) chosen() *api.QueueItem {
	if p.cursor.At >= len(p.resp.Entries) {
		return nil
	}
	return &p.resp.Entries[p.cursor.At]
}

// change returns an action on the chosen entry.
func (p *Page) change(change, done string) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		e := p.chosen()
		if e == nil {
			return p.desk.Say("there is no entry")
		}
		d, run, into, env, config := &p.desk.Daemon, e.Entry.Run, e.Entry.Target, p.desk.Env, p.desk.Config
		act := func() tea.Cmd {
			return p.desk.Act(change+" "+run, run+" "+done, func(ctx context.Context) error {
				_, err := d.ChangeQueue(ctx, api.ChangeQueueRequest{Change: change, Runs: []string{run}, Into: into, Env: env, Config: config})
				return err
			})
		}
		if change == "remove" {
			return p.desk.Confirm("take "+run+" out of the queue of "+into+"?", act)
		}
		return act()
	}
}

func (p *Page) visit() tea.Cmd {
	if e := p.chosen(); e != nil {
		return p.desk.Go(e.Entry.RunID)
	}
	return nil
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the landing queues"
	return append(page.MoveKeys(group, "entry", func() (*page.Cursor, int) { return &p.cursor, len(p.resp.Entries) }, nil),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to its run", Short: "run", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "hold", Keys: []string{"h"}, Shown: "h", Does: "hold it", Short: "hold", Group: group, Act: p.change("hold", "is held")},
		page.Binding{Name: "release", Keys: []string{"r"}, Shown: "r", Does: "resume it", Short: "resume", Group: group, Act: p.change("resume", "continues")},
		page.Binding{Name: "retry", Keys: []string{"t"}, Shown: "t", Does: "try it again", Short: "retry", Group: group, Act: p.change("retry", "is tried again")},
		page.Binding{Name: "drop", Keys: []string{"D"}, Shown: "D", Does: "take it out of the queue, after a y", Group: group, Act: p.change("remove", "is out of the queue")},
	)
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  reading …")}, width, height)
	case len(p.resp.Entries) == 0:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  no work waits to land: agency queue add RUN")}, width, height)
	}
	most := max(height/4, 1)
	lines := p.cursor.Draw(width, height-most-1, len(p.resp.Entries), p.row)
	if height > most {
		lines = append(lines, cell.Of(cell.Dim, strings.Repeat("─", width)))
	}
	return page.Fill(append(lines, cell.Wrap(cell.Plain, p.why(), 1, width, most)...), width, height)
}

func (p *Page) row(i int) cell.Line {
	e := &p.resp.Entries[i]
	place := "-"
	if e.Position > 0 {
		place = fmt.Sprint(e.Position)
	}
	return cell.Of(cell.Dim, fmt.Sprintf("%3s ", place)).Add(cell.Bold, term.Pad(term.Fit(term.SafeLine(e.Entry.Run), 22), 22)).
		Add(cell.Dim, " → "+term.Pad(term.Fit(term.SafeLine(e.Entry.Target), 16), 16)).Add(cell.Coloured(colour(&e.Entry)), " "+string(e.Entry.State)+"  ").Add(cell.Plain, e.Why)
}

func colour(e *agency.QueueEntry) view.Colour {
	switch {
	case e.State.Moving():
		return view.Green
	case e.Held():
		return view.Yellow
	case e.State.WithAgent():
		return view.Cyan
	default:
		return view.Red
	}
}

// why returns why the chosen entry is where it is, and why its queue stands still.
func (p *Page) why() string {
	e := p.chosen()
	lines := []string{e.Why}
	for i := range p.resp.Queues {
		q := &p.resp.Queues[i]
		if q.Repo != e.Entry.Repo || q.Target != e.Entry.Target {
			continue
		}
		if q.Paused {
			lines = append(lines, "the queue of "+q.Target+" is paused: agency queue resume")
		}
		if q.Note != "" {
			lines = append(lines, q.Note)
		}
	}
	return strings.Join(lines, "\n")
}
