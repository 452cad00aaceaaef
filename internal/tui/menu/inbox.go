package menu

import (
	"cmp"
	"context"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/about"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// inbox lists the alerts and the messages that wait for the user, and opens those that the user
// chooses.
func (m *Menu) inbox(ctx context.Context) error {
	return m.console.browse(ctx, "number of an alert or a message", "no alert and no message waits for you", func() (rows, error) {
		alerts, messages, err := about.Inbox(ctx, &m.o.Daemon)
		texts, items := []string{}, []func() error{}
		for i := range alerts {
			text := view.AlertSentence(&alerts[i])
			if alerts[i].SnoozedUntil != nil {
				text = "snoozed: " + text
			}
			texts, items = append(texts, text), append(items, func() error { return m.alert(ctx, &alerts[i]) })
		}
		names := m.runs.names()
		for i := range messages {
			msg := &messages[i]
			texts = append(texts, cmp.Or(names[msg.From], msg.From)+" wrote: "+view.MessageText(msg))
			items = append(items, func() error { return m.message(ctx, msg) })
		}
		return rows{texts: texts, open: func(c choice) error { return items[c.rows[0]]() }}, err
	})
}

// alert prints an alert, and does what the user chooses.
func (m *Menu) alert(ctx context.Context, al *api.Alert) error {
	m.console.say("%s", view.AlertSentence(al))
	m.console.say("its command: %s", view.AlertCommand(al))
	d, ids := &m.o.Daemon, []string{al.ID}
	actions := []action{}
	switch {
	case al.RunID != "":
		actions = append(actions, action{does: "its run", do: func(ctx context.Context, _ string) (string, error) { return "", m.run(ctx, al.RunID) }})
	case al.SessionID != "":
		actions = append(actions, action{does: "its session", do: func(ctx context.Context, _ string) (string, error) {
			return "", m.session(ctx, string(al.SessionID))
		}})
	}
	snooze, done, wait := "snooze it for an hour", "snoozed for an hour", page.Snooze
	if al.SnoozedUntil != nil {
		snooze, done, wait = "end its snooze", "no longer snoozed", page.SnoozeOver
	}
	return m.console.act(ctx, al.Ref(), append(actions,
		action{does: "acknowledge it", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.AckAlerts(ctx, api.AckAlertRequest{Alerts: ids})
			return "acknowledged", err
		}},
		action{does: snooze, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: ids, ForMS: wait.Milliseconds()})
			return done, err
		}},
	))
}

// message prints a message, and does what the user chooses.
func (m *Menu) message(ctx context.Context, msg *agency.Message) error {
	if err := m.console.pages(ctx, strings.Split(view.MessageText(msg), "\n"), false); err != nil {
		return err
	}
	actions := []action{{does: "acknowledge it", do: func(ctx context.Context, _ string) (string, error) {
		_, err := m.o.Daemon.AckMessages(ctx, api.AckMessagesRequest{Messages: []string{msg.ID}})
		return "acknowledged", err
	}}}
	if msg.From != agency.User {
		actions = append(actions, action{does: "the run that wrote it", do: func(ctx context.Context, _ string) (string, error) {
			return "", m.run(ctx, agency.RunID(msg.From))
		}})
	}
	return m.console.act(ctx, "the message", actions)
}
