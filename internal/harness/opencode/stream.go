package opencode

import (
	"agency"
	"agency/internal/harness/agent"
)

// stream reads a line of opencode run --format json.
func stream(line []byte) []agency.Evidence {
	var in struct {
		Type    string   `json:"type"`
		Session string   `json:"sessionID"`
		Part    part     `json:"part"`
		Error   *failure `json:"error"`
	}
	if !agent.Lenient(line, &in) || in.Type == "" {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable line"}}
	}
	var evidence []agency.Evidence
	switch in.Type {
	case "step_start":
		evidence = []agency.Evidence{{Signal: agency.SignalSession, Conversation: in.Session}, {Signal: agency.SignalBusy}}
	case "tool_use": // sent when it has ended
		evidence = in.Part.tool()
	case "step_finish":
		evidence = in.Part.step()
	case "error":
		e := in.Error.evidence()
		evidence = []agency.Evidence{{Signal: agency.SignalSession, Conversation: in.Session}, e}
	case "text", "reasoning":
	default:
		evidence = []agency.Evidence{{Signal: agency.SignalUnknown}}
	}
	for i := range evidence {
		evidence[i].Event = in.Type
	}
	return evidence
}

// step reads the end of one answer of the model, which ends the turn unless it called tools or was
// cut off.
func (p *part) step() []agency.Evidence {
	var evidence []agency.Evidence
	if usage := p.usage(); usage != nil {
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalUsage, Usage: usage, Add: true})
	}
	if p.Reason == "stop" {
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalTurnEnded})
	}
	return evidence
}
