package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/api"
)

// AlertNotified returns the progress of an alert: not notified, how often its recipient was
// notified, or what the recipient did about it.
func AlertNotified(al *api.Alert) string {
	switch {
	case al.ResolvedAt != nil:
		return "over"
	case al.AckedAt != nil:
		return "acknowledged"
	case al.SnoozedUntil != nil:
		return "snoozed"
	case al.NotifyCount == 0:
		return "not yet"
	case len(al.Recipients) == 0:
		return "no recipient"
	default:
		return strconv.Itoa(al.NotifyCount) + "x"
	}
}

// sessionWords returns the words for a kind of message from the daemon about a session.
func sessionWords(kind string) string {
	if slices.Contains(agency.SessionAlertKinds(), agency.AlertKind(kind)) {
		return agency.AlertKind(kind).Words()
	}
	return agency.NoticeKind(kind).Words()
}

// MessageText returns the text of a message for users, as lines of untrusted text. If the payload has none of
// the usual fields, the text is the payload itself.
func MessageText(m *agency.Message) string {
	var said map[string]any
	if json.Unmarshal(m.Payload, &said) != nil {
		return string(m.Payload)
	}
	word := func(key string) string { text, _ := said[key].(string); return text }
	if m.From == agency.Daemon && word("worker_name") != "" {
		if text := api.AlertText(m.Payload); text != "" {
			return word("worker_name") + " " + agency.AlertKind(m.Type).Words() + ": " + text
		}
		return word("worker_name") + " " + agency.AlertKind(m.Type).Words()
	}
	if m.From == agency.Daemon && word("session_id") != "" {
		name := word("session_name")
		if name == "" {
			name = word("session_id")
		}
		return "session " + name + " " + sessionWords(m.Type) + ": " + word("text")
	}
	var lines []string
	for _, key := range []string{"summary", "text", "message", "question", "error"} {
		if text := word(key); text != "" {
			lines = append(lines, text)
		}
	}
	for _, key := range []string{"questions", "blockers"} {
		list, _ := said[key].([]any)
		for _, item := range list {
			if text, ok := item.(string); ok && text != "" {
				lines = append(lines, "- "+text)
			}
		}
	}
	if status := word("status"); status != "" {
		lines = append([]string{strings.ReplaceAll(status, "_", " ")}, lines...)
	}
	if len(lines) == 0 {
		return string(m.Payload)
	}
	return strings.Join(lines, "\n")
}
