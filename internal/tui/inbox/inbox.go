// Package inbox is the screen of what waits for the user to read it: alerts and messages.
package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Snooze is how long an alert is silent that the user postponed.
const Snooze = time.Hour

// Page is the inbox of the user.
type Page struct {
	page.Quiet

	desk   *page.Desk
	items  []item
	loaded bool
	cursor page.Cursor
}

// item is an alert or a message.
type item struct {
	alert   *api.Alert
	message *agency.Message
}

type itemsMsg struct {
	items []item
	err   error
}

// New returns the inbox.
func New(desk *page.Desk) *Page { return &Page{desk: desk} }

// Title implements page.Page.
func (p *Page) Title() string { return fmt.Sprintf("inbox %d", len(p.items)) }

// Open implements page.Page.
func (p *Page) Open() tea.Cmd {
	d, ctx := &p.desk.Daemon, p.desk.Ctx
	return func() tea.Msg {
		alerts, err := d.ListAlerts(ctx, api.ListAlertsRequest{})
		if err != nil {
			return itemsMsg{err: err}
		}
		messages, err := d.ListMessages(ctx, api.ListMessagesRequest{Recipient: agency.User})
		if err != nil {
			return itemsMsg{err: err}
		}
		items := make([]item, 0, len(alerts.Alerts)+len(messages.Messages))
		for i := range alerts.Alerts {
			items = append(items, item{alert: &alerts.Alerts[i]})
		}
		for i := range messages.Messages {
			if m := &messages.Messages[i]; m.From != agency.Daemon { // what agency says of runs is in the alerts
				items = append(items, item{message: m})
			}
		}
		return itemsMsg{items: items}
	}
}

// Changed implements page.Page.
func (p *Page) Changed() tea.Cmd { return p.Open() }

// Update implements page.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	list, ok := msg.(itemsMsg)
	if !ok {
		return nil
	}
	if list.err != nil {
		return p.desk.Fail(list.err)
	}
	was := p.chosen()
	p.items, p.loaded = list.items, true
	for i := range p.items {
		if p.items[i].id() == was.id() {
			p.cursor.At = i
		}
	}
	p.cursor.Keep(len(p.items))
	return nil
}

func (p *Page) chosen() item {
	if p.cursor.At >= len(p.items) {
		return item{}
	}
	return p.items[p.cursor.At]
}

func (it item) id() string {
	switch {
	case it.alert != nil:
		return it.alert.ID
	case it.message != nil:
		return it.message.ID
	default:
		return ""
	}
}

// run returns the run that the item is about.
func (it item) run() agency.RunID {
	switch {
	case it.alert != nil:
		return it.alert.RunID
	case it.message != nil:
		return agency.RunID(it.message.From)
	default:
		return ""
	}
}

func (p *Page) acknowledge() tea.Cmd {
	it, d := p.chosen(), &p.desk.Daemon
	switch {
	case it.alert != nil:
		return p.desk.Act("acknowledging", "acknowledged", func(ctx context.Context) error {
			_, err := d.AckAlerts(ctx, api.AckAlertRequest{Alerts: []string{it.alert.ID}})
			return err
		})
	case it.message != nil:
		return p.desk.Act("acknowledging", "acknowledged", func(ctx context.Context) error {
			_, err := d.AckMessages(ctx, api.AckMessagesRequest{Messages: []string{it.message.ID}})
			return err
		})
	default:
		return p.desk.Say("there is nothing to acknowledge")
	}
}

func (p *Page) snooze() tea.Cmd {
	it, d := p.chosen(), &p.desk.Daemon
	if it.alert == nil {
		return p.desk.Say("only an alert can be snoozed")
	}
	return p.desk.Act("snoozing", "snoozed for an hour", func(ctx context.Context) error {
		_, err := d.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: []string{it.alert.ID}, ForMS: Snooze.Milliseconds()})
		return err
	})
}

func (p *Page) visit() tea.Cmd {
	run := p.chosen().run()
	if run == "" {
		return p.desk.Say("it is about no run")
	}
	return p.desk.Go(run)
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the inbox"
	return append(page.MoveKeys(group, "item", func() (*page.Cursor, int) { return &p.cursor, len(p.items) }, nil),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to the run that it is about", Short: "run", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "acknowledge", Keys: []string{"a"}, Shown: "a", Does: "acknowledge it", Short: "acknowledge", Group: group, Act: page.Run(p.acknowledge)},
		page.Binding{Name: "snooze", Keys: []string{"z"}, Shown: "z", Does: "no more of this alert for an hour", Short: "snooze", Group: group, Act: page.Run(p.snooze)},
	)
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  reading …")}, width, height)
	case len(p.items) == 0:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  no alert and no message waits for you")}, width, height)
	}
	most := max(height/3, 1) // rows of the text
	lines := p.cursor.Draw(width, height-most-1, len(p.items), func(i int) cell.Line { return p.row(i) })
	if height > most {
		lines = append(lines, cell.Of(cell.Dim, strings.Repeat("─", width)))
	}
	text := ""
	if it := p.chosen(); it.alert != nil {
		text = api.AlertText(it.alert.Payload)
	} else if it.message != nil {
		text = view.MessageText(it.message)
	}
	return page.Fill(append(lines, cell.Wrap(cell.Plain, text, 1, width, most)...), width, height)
}

func (p *Page) row(i int) cell.Line {
	it := p.items[i]
	if it.alert != nil {
		a := it.alert
		return cell.Of(cell.Coloured(view.Yellow), "! ").Add(cell.Bold, term.Pad(term.Fit(term.SafeLine(a.Ref()), 20), 20)).
			Add(cell.Dim, fmt.Sprintf(" %4s  ", view.Age(p.desk.Now().Sub(a.OpenedAt)))).Add(cell.Plain, a.Kind.Words()).
			Add(cell.Dim, " ("+view.AlertNotified(a)+")  ").Add(cell.Plain, api.AlertText(a.Payload))
	}
	m := it.message
	return cell.Of(cell.Coloured(view.Cyan), "✉ ").Add(cell.Bold, term.Pad(term.Fit(term.SafeLine(p.desk.Name(m.From)), 20), 20)).
		Add(cell.Dim, fmt.Sprintf(" %4s  ", view.Age(p.desk.Now().Sub(m.CreatedAt)))).Add(cell.Plain, m.Type+"  "+view.MessageText(m))
}
