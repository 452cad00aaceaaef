package menu

import (
	"cmp"
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/about"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// inbox lists the alerts and the messages that wait for the user, and opens those that the user
// chooses.
func (m *Menu) inbox(ctx context.Context) error {
	return m.browse(ctx, "number of an alert or a message", "no alert and no message waits for you", func() ([]string, func(int) error, error) {
		alerts, messages, err := about.Inbox(ctx, &m.o.Daemon)
		rows, items := []string{}, []func() error{}
		for i := range alerts {
			rows, items = append(rows, view.AlertSentence(&alerts[i])), append(items, func() error { return m.alert(ctx, &alerts[i]) })
		}
		names := m.names()
		for i := range messages {
			msg := &messages[i]
			rows, items = append(rows, cmp.Or(names[msg.From], msg.From)+" wrote: "+view.MessageText(msg)), append(items, func() error { return m.message(ctx, msg) })
		}
		return rows, func(i int) error { return items[i]() }, err
	})
}

func (m *Menu) alert(ctx context.Context, al *api.Alert) error {
	m.say("%s; command: %s", view.AlertSentence(al), view.AlertCommand(al))
	d, ids := &m.o.Daemon, []string{al.ID}
	actions := []action{
		{does: "acknowledge it", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.AckAlerts(ctx, api.AckAlertRequest{Alerts: ids})
			return "acknowledged", err
		}},
		{does: "snooze it for an hour", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: ids, ForMS: page.Snooze.Milliseconds()})
			return "snoozed for an hour", err
		}},
	}
	switch {
	case al.RunID != "":
		actions = append(actions, action{does: "its run", do: func(ctx context.Context, _ string) (string, error) { return "", m.runWithID(ctx, al.RunID) }})
	case al.SessionID != "":
		actions = append(actions, action{does: "its session", do: func(ctx context.Context, _ string) (string, error) {
			return "", m.session(ctx, string(al.SessionID))
		}})
	}
	return m.act(ctx, actions)
}

func (m *Menu) message(ctx context.Context, msg *agency.Message) error {
	m.sayLines(view.MessageText(msg))
	return m.act(ctx, []action{
		{does: "acknowledge it", do: func(ctx context.Context, _ string) (string, error) {
			_, err := m.o.Daemon.AckMessages(ctx, api.AckMessagesRequest{Messages: []string{msg.ID}})
			return "acknowledged", err
		}},
		{does: "its run", do: func(ctx context.Context, _ string) (string, error) {
			return "", m.runWithID(ctx, agency.RunID(msg.From))
		}},
	})
}
