package view

import (
	"encoding/json"
	"slices"

	"agency"
	"agency/internal/api"
)

// promptTypeOf returns what the run of an alert waits for.
func promptTypeOf(al *api.Alert) agency.PromptType {
	var p struct {
		Type agency.PromptType `json:"prompt_type"`
	}
	_ = json.Unmarshal(al.Payload, &p) // no type counts as a question
	return p.Type
}

// AlertSentence returns an alert in one sentence. It is untrusted text.
func AlertSentence(al *api.Alert) string {
	subject, words := al.Ref(), al.Kind.Words()
	switch {
	case al.SessionID != "":
		subject = "session " + subject
	case al.Kind == agency.AlertNeedsInput:
		words = map[agency.PromptType]string{
			agency.PromptBlocked: "is blocked", agency.PromptTurnEnded: "waits for you", agency.PromptAttention: "is flagged",
		}[promptTypeOf(al)]
		if words == "" {
			words = "asks"
		}
	case al.Kind == agency.AlertHostDisk:
		subject = "a disk"
	}
	if text := api.AlertText(al.Payload); text != "" {
		words += ": " + text
	}
	return subject + " " + words
}

// LandingAlert returns the oldest alert about the landing of a run; nil for none.
func LandingAlert(alerts []api.Alert) *api.Alert {
	for i := range alerts {
		if slices.Contains(agency.LandingAlertKinds(), alerts[i].Kind) {
			return &alerts[i]
		}
	}
	return nil
}

// AlertCommand returns the command that deals with an alert.
func AlertCommand(al *api.Alert) string {
	switch al.Kind {
	case agency.AlertNeedsInput:
		switch promptTypeOf(al) {
		case agency.PromptConfirmation, agency.PromptTurnEnded:
			return "agency attach " + al.Ref()
		case agency.PromptBlocked:
			return "agency send " + al.Ref()
		case agency.PromptAttention:
			return "agency show " + al.Ref()
		default:
			return "agency answer " + al.Ref()
		}
	case agency.AlertLost, agency.AlertError:
		return "agency resume " + al.Ref()
	case agency.AlertComplete:
		return "agency diff " + al.Ref()
	case agency.AlertStuck:
		return "agency attach " + al.Ref()
	case agency.AlertSessionPaused, agency.AlertSessionWaiting, agency.AlertSessionFailed:
		return "agency session show " + al.Ref()
	case agency.AlertLandingConflict, agency.AlertLandingFailed, agency.AlertLandingHeld:
		var p struct {
			Command string `json:"command"`
		}
		if json.Unmarshal(al.Payload, &p) == nil && p.Command != "" {
			return p.Command
		}
	case agency.AlertHostDisk:
		return "agency gc"
	}
	return "agency alerts ack " + al.ID
}
