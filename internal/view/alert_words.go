package view

import (
	"encoding/json"

	"agency"
	"agency/internal/api"
)

// promptTypeOf returns what an alert about a run that needs input waits for.
func promptTypeOf(al *api.Alert) agency.PromptType {
	var p struct {
		Type agency.PromptType `json:"prompt_type"`
	}
	_ = json.Unmarshal(al.Payload, &p) // without a type it is like any other
	return p.Type
}

// AlertSentence returns an alert in one sentence. It is untrusted text.
func AlertSentence(al *api.Alert) string {
	subject, says := al.Ref(), al.Kind.Words()
	switch {
	case al.SessionID != "":
		subject = "session " + subject
	case al.Kind == agency.AlertNeedsInput:
		says = map[agency.PromptType]string{
			agency.PromptBlocked: "is blocked", agency.PromptTurnEnded: "waits for you", agency.PromptAttention: "is flagged",
		}[promptTypeOf(al)]
		if says == "" {
			says = "asks"
		}
	case al.Kind == agency.AlertHostDisk:
		subject = "a disk"
	}
	if text := api.AlertText(al.Payload); text != "" {
		says += ": " + text
	}
	return subject + " " + says
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
	case agency.AlertHostDisk:
		return "agency gc"
	}
	return "agency alerts ack " + al.ID
}
