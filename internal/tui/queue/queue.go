// Package queue is the screen of the landing queues, each entry a row.
package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

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
	pane   page.Pane
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

// chosen returns the entry at the cursor; nil if there is none.
func (p *Page) chosen() *api.QueueItem {
	if p.cursor.At >= len(p.resp.Entries) {
		return nil
	}
	return &p.resp.Entries[p.cursor.At]
}

// change returns the action of a key that changes the chosen entry.
func (p *Page) change(change, done string) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		e := p.chosen()
		if e == nil {
			return p.desk.Say("there is no entry")
		}
		d, run, id, into, env, config := &p.desk.Daemon, e.Entry.Run, string(e.Entry.RunID), e.Entry.Target, p.desk.Env, p.desk.Config
		act := func() tea.Cmd {
			return p.desk.Act(change+" "+run, run+" "+done, func(ctx context.Context) error {
				_, err := d.ChangeQueue(ctx, api.ChangeQueueRequest{Change: change, Runs: []string{id}, Into: into, Env: env, Config: config})
				return err
			})
		}
		if change == "remove" {
			return p.desk.Confirm("take "+run+" out of the queue of "+into+"?", act)
		}
		return act()
	}
}

// pause pauses the queue of the chosen entry, or continues it.
func (p *Page) pause() tea.Cmd {
	item := p.chosen()
	if item == nil {
		return p.desk.Say("there is no entry")
	}
	d, e, env, config := &p.desk.Daemon, item.Entry, p.desk.Env, p.desk.Config
	does, done, resume := "pausing", "is paused", page.QueueOf(&p.resp, &e).Paused
	if resume {
		does, done = "resuming", "continues"
	}
	return p.desk.Act(does+" the queue of "+e.Target, "the queue of "+e.Target+" "+done, func(ctx context.Context) error {
		return d.PauseQueueOf(ctx, &e, resume, env, config)
	})
}

// visit goes to the run of the chosen entry.
func (p *Page) visit() tea.Cmd {
	if e := p.chosen(); e != nil {
		return p.desk.Go(e.Entry.RunID)
	}
	return nil
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the landing queues"
	now := func() (*page.Cursor, int) { return &p.cursor, len(p.resp.Entries) }
	return append(append(page.MoveKeys(group, "entry", now, nil), p.pane.Keys(group)...),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to its run", Short: "run", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "hold", Keys: []string{"h"}, Shown: "h", Does: "hold it", Short: "hold", Group: group, Act: p.change("hold", "is held")},
		page.Binding{Name: "release", Keys: []string{"r"}, Shown: "r", Does: "resume it", Short: "resume", Group: group, Act: p.change("resume", "continues")},
		page.Binding{Name: "pause", Keys: []string{"p"}, Shown: "p", Does: "pause its whole queue, or have it continue", Short: "pause", Group: group, Act: page.Run(p.pause)},
		page.Binding{Name: "retry", Keys: []string{"t"}, Shown: "t", Does: "try it again", Short: "retry", Group: group, Act: p.change("retry", "is tried again")},
		page.Binding{Name: "drop", Keys: []string{"D"}, Shown: "D", Does: "take it out of the queue, after a y", Group: group, Act: p.change("remove", "is out of the queue")},
	)
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Message("reading …", width, height)
	case len(p.resp.Entries) == 0:
		return page.Message("no work waits to land: agency queue add RUN", width, height)
	}
	rows := min(len(p.resp.Entries), max(height*2/3, 1))
	run, target := p.widths(width)
	lines := p.cursor.Draw(width, rows, len(p.resp.Entries), func(i int) cell.Line { return p.row(i, run, target) })
	e := p.chosen()
	text := page.Text{Of: strconv.FormatInt(e.Entry.Seq, 10), Lines: p.text(e, width)}
	return page.Fill(append(lines, p.pane.Draw(text, width, height-rows)...), width, height)
}

// widths returns the widths of the columns for the runs and the branches.
func (p *Page) widths(width int) (run, target int) {
	for i := range p.resp.Entries {
		e := &p.resp.Entries[i].Entry
		run, target = max(run, term.Width(term.SafeLine(e.Run))), max(target, term.Width(term.SafeLine(e.Target)))
	}
	return min(run, max(width/4, 12)), min(target, max(width/6, 8))
}

// row returns the row of an entry.
func (p *Page) row(i, run, target int) cell.Line {
	e := &p.resp.Entries[i]
	place := "-"
	if e.Position > 0 {
		place = strconv.Itoa(e.Position)
	}
	return cell.Of(cell.Dim, fmt.Sprintf("%3s ", place)).Add(cell.Bold, term.Pad(page.Shorten(term.SafeLine(e.Entry.Run), run), run)).
		Add(cell.Dim, " → "+term.Pad(page.Shorten(term.SafeLine(e.Entry.Target), target), target)).
		Add(cell.Coloured(colour(&e.Entry)), fmt.Sprintf("  %-8s", e.Entry.State)).Add(cell.Dim, fmt.Sprintf(" %4s", p.age(e.Entry.ChangedAt))).
		Add(cell.Plain, "  "+e.Why)
}

// age returns how long ago something was.
func (p *Page) age(at time.Time) string { return view.Age(p.desk.Now().Sub(at)) }

// colour returns the colour of the state of an entry.
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

// text returns the facts about an entry: its state and why it has it, and why its queue stands still.
func (p *Page) text(item *api.QueueItem, width int) []cell.Line {
	e := &item.Entry
	lines := []cell.Line{}
	fact := func(name, text string) { lines = append(lines, page.Fact(name, text, width)...) }
	fact("run", e.Run+" → "+e.Target)
	state := string(e.State)
	if age := p.age(e.ChangedAt); age != "now" {
		state += " for " + age
	}
	if item.Position > 0 {
		state += fmt.Sprintf(", number %d in the queue", item.Position)
	}
	fact("state", state)
	q := page.QueueOf(&p.resp, e)
	fact("why", item.Why)
	switch {
	case q.Paused && e.State.Moving():
		fact("queue", "paused") // why names the command
	case q.Paused:
		fact("queue", "paused; continue: agency queue resume")
	case q.Note != item.Why:
		fact("queue", q.Note)
	}
	if e.State.WithAgent() && e.Rounds > 1 {
		fact("rounds", fmt.Sprintf("its agent was asked %d times", e.Rounds))
	}
	fact("commit", fmt.Sprintf("%.12s", e.Source))
	fact("added", page.Ago(p.desk.Now().Sub(e.AddedAt))+" by "+p.desk.Name(e.By))
	return lines
}
