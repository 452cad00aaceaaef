// Package inbox is the screen with the alerts and messages that wait for the user.
package inbox

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/about"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/tui/session"
	"agency/internal/view"
)

// Page is the inbox of the user.
type Page struct {
	page.Quiet

	desk   *page.Desk
	items  []item
	loaded bool
	cursor page.Cursor
	pane   page.Pane
}

// item is an alert or a message. The zero item is neither.
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
		alerts, messages, err := about.Inbox(ctx, d)
		items := make([]item, 0, len(alerts)+len(messages))
		for i := range alerts {
			items = append(items, item{alert: &alerts[i]})
		}
		for i := range messages {
			items = append(items, item{message: &messages[i]})
		}
		return itemsMsg{items, err}
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

// chosen returns the item at the cursor.
func (p *Page) chosen() item {
	if p.cursor.At >= len(p.items) {
		return item{}
	}
	return p.items[p.cursor.At]
}

// id returns the id of the alert or the message.
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

// run returns the run that the alert is about, or that wrote the message.
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

// acknowledge acknowledges the item at the cursor.
func (p *Page) acknowledge() tea.Cmd {
	if it := p.chosen(); it.id() != "" {
		return p.ack([]item{it})
	}
	return p.desk.Say("there is nothing to acknowledge")
}

// acknowledgeAll acknowledges, after a y, the items that the inbox has at the time of the question.
func (p *Page) acknowledgeAll() tea.Cmd {
	items := p.items
	if len(items) == 0 {
		return p.desk.Say("there is nothing to acknowledge")
	}
	return p.desk.Confirm(fmt.Sprintf("acknowledge all %d?", len(items)), func() tea.Cmd { return p.ack(items) })
}

// ack acknowledges items.
func (p *Page) ack(items []item) tea.Cmd {
	d, alerts, messages := &p.desk.Daemon, []string{}, []string{}
	for _, it := range items {
		if it.alert != nil {
			alerts = append(alerts, it.alert.ID)
		} else {
			messages = append(messages, it.message.ID)
		}
	}
	return p.desk.Act("acknowledging", "acknowledged", func(ctx context.Context) error {
		if len(alerts) > 0 {
			if _, err := d.AckAlerts(ctx, api.AckAlertRequest{Alerts: alerts}); err != nil {
				return err
			}
		}
		if len(messages) == 0 {
			return nil
		}
		_, err := d.AckMessages(ctx, api.AckMessagesRequest{Messages: messages})
		return err
	})
}

// snooze snoozes the alert at the cursor.
func (p *Page) snooze() tea.Cmd {
	it, d := p.chosen(), &p.desk.Daemon
	if it.alert == nil {
		return p.desk.Say("only an alert can be snoozed")
	}
	return p.desk.Act("snoozing", "snoozed for an hour", func(ctx context.Context) error {
		_, err := d.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: []string{it.alert.ID}, ForMS: page.Snooze.Milliseconds()})
		return err
	})
}

// visit goes to the run or the session of the item at the cursor.
func (p *Page) visit() tea.Cmd {
	it := p.chosen()
	switch run := it.run(); {
	case run != "":
		return p.desk.Go(run)
	case it.alert != nil && it.alert.SessionID != "":
		return p.desk.Open(session.At(p.desk, it.alert.SessionID))
	default:
		return p.desk.Say("it is about no run and no session")
	}
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the inbox"
	now := func() (*page.Cursor, int) { return &p.cursor, len(p.items) }
	return append(append(page.MoveKeys(group, "item", now, nil), p.pane.Keys(group)...),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to the run or the session that it is about", Short: "open", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "acknowledge", Keys: []string{"a"}, Shown: "a", Does: "acknowledge it", Short: "acknowledge", Group: group, Act: page.Run(p.acknowledge)},
		page.Binding{Name: "clear", Keys: []string{"*"}, Shown: "*", Does: "acknowledge all, after a y", Group: group, Act: page.Run(p.acknowledgeAll)},
		page.Binding{Name: "snooze", Keys: []string{"z"}, Shown: "z", Does: "no more of this alert for an hour", Short: "snooze", Group: group, Act: page.Run(p.snooze)},
	)
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Message("reading …", width, height)
	case len(p.items) == 0:
		return page.Message("no alert and no message waits for you", width, height)
	}
	rows := min(len(p.items), max(height*2/3, 1))
	lines := p.cursor.Draw(width, rows, len(p.items), p.row)
	it := p.chosen()
	return page.Fill(append(lines, p.pane.Draw(page.Text{Of: it.id(), Lines: p.text(it, width)}, width, height-rows)...), width, height)
}

// text returns the whole text of an item, and below it the facts about the item.
func (p *Page) text(it item, width int) []cell.Line {
	ago := func(at time.Time) string { return page.Ago(p.desk.Now().Sub(at)) }
	said, facts := "", []cell.Line{}
	switch {
	case it.alert != nil:
		said = view.AlertSentence(it.alert)
		facts = append(page.Fact("command", view.AlertCommand(it.alert), width), page.Fact("opened", ago(it.alert.OpenedAt)+", notified: "+view.AlertNotified(it.alert), width)...)
	case it.message != nil:
		said = view.MessageText(it.message)
		facts = page.Fact("from", p.desk.Name(it.message.From)+", "+ago(it.message.CreatedAt)+", as "+it.message.Type, width)
	}
	return append(append(cell.Wrap(cell.Plain, said, 1, width, 0), cell.Of(cell.Plain, "")), facts...)
}

// row returns the row of an item.
func (p *Page) row(i int) cell.Line {
	it := p.items[i]
	if it.alert != nil {
		a := it.alert
		return cell.Of(cell.Coloured(view.Yellow), "! ").Add(cell.Bold, term.Pad(page.Shorten(term.SafeLine(a.Ref()), 20), 20)).
			Add(cell.Dim, fmt.Sprintf(" %4s  ", view.Age(p.desk.Now().Sub(a.OpenedAt)))).Add(cell.Plain, a.Kind.Words()).
			Add(cell.Dim, " ("+view.AlertNotified(a)+")  ").Add(cell.Plain, api.AlertText(a.Payload))
	}
	m := it.message
	return cell.Of(cell.Coloured(view.Cyan), "✉ ").Add(cell.Bold, term.Pad(page.Shorten(term.SafeLine(p.desk.Name(m.From)), 20), 20)).
		Add(cell.Dim, fmt.Sprintf(" %4s  ", view.Age(p.desk.Now().Sub(m.CreatedAt)))).Add(cell.Plain, m.Type+"  "+view.MessageText(m))
}
