package view

import (
	"agency"
	"agency/internal/api"
)

// PromptID returns the id of what a run waits for, by which the daemon can refuse an answer to an older prompt.
// It is empty when the run waits for nothing. It is also empty while only the title of the terminal shows that
// the agent asks: agency has not read yet what it asks.
func PromptID(r *api.Run) string {
	if r.Request != nil && r.Request.Text == "" && r.Request.Tool == "" {
		return ""
	}
	return agency.Status{Label: r.Status, Since: r.Since, Request: r.Request}.PromptID()
}

// Asks returns what a run asks, in one sentence. It is untrusted text.
func Asks(r *api.Run) string {
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		return r.Ref() + " shows a dialog: " + Summary(r)
	case r.Status == agency.NeedsInput:
		return r.Ref() + " asks: " + Summary(r)
	case r.Status == agency.Waiting:
		return r.Ref() + " waits: its turn ended, and it did not say what it needs"
	default:
		return r.Ref() + " is " + string(r.Status) + ": " + Summary(r)
	}
}

// Choices returns the answers that the request of a run takes, with what each does. There are none without a
// request, and for a dialog, which only the user can answer in the terminal.
func Choices(r *api.Run) [][2]string {
	switch {
	case r.Request == nil || r.Request.Kind == agency.AsksDialog:
		return nil
	case r.Request.Kind == agency.AsksPermission:
		return [][2]string{{string(agency.Allow), "permit this once"}, {string(agency.Deny), "refuse it"}}
	default:
		return [][2]string{{"TEXT", "one of its options, or your own answer"}, {string(agency.Deny), "give no answer"}}
	}
}
