package menu

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// inbox lists the alerts and the messages that wait for the user, and opens those that the user
// chooses.
func (m *Menu) inbox(ctx context.Context) error {
	return m.browse(ctx, "number of an alert or a message", "no alert and no message waits for you", func() ([]string, func(int) error, error) {
		rows, items := []string{}, []func() error{}
		alerts, err := m.o.Daemon.ListAlerts(ctx, api.ListAlertsRequest{})
		if err != nil {
			return nil, nil, err
		}
		for i := range alerts.Alerts {
			if al := &alerts.Alerts[i]; al.AckedAt == nil {
				rows, items = append(rows, view.AlertSentence(al)), append(items, func() error { return m.alert(ctx, al) })
			}
		}
		messages, err := m.o.Daemon.ListMessages(ctx, api.ListMessagesRequest{Recipient: agency.User})
		names := m.names()
		for i := range messages.Messages {
			msg := &messages.Messages[i]
			if msg.From == agency.Daemon { // what agency says of runs is in the alerts
				continue
			}
			from := msg.From
			if name := names[from]; name != "" {
				from = name
			}
			rows, items = append(rows, from+" wrote: "+view.MessageText(msg)), append(items, func() error { return m.message(ctx, msg) })
		}
		return rows, func(i int) error { return items[i]() }, err
	})
}

func (m *Menu) alert(ctx context.Context, al *api.Alert) error {
	m.say("%s; it is answered by %s", view.AlertSentence(al), view.AlertCommand(al))
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
