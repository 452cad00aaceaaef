package protocol

import (
	"fmt"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Limits of what is shown of a text.
const (
	mostShown  = 400 // lines of a message
	mostResult = 3   // lines of a tool's result; the wire has all
	mostRunes  = 300 // characters of a line of a tool
)

// The marks at the beginnings of lines.
const (
	markUs      = "> "
	markAgent   = "● "
	markTool    = "  ▸ "
	markResult  = "    "
	markRequest = "? "
	markNote    = "— "
)

// show returns an event as people read it, with line ends; empty for an event that is not shown. It is
// called before the event is applied.
func (m *memory) show(e *Event) string {
	who := ""
	if e.Subagent != "" {
		who = "(subagent) "
	}
	switch e.Kind {
	case Message:
		return block(markAgent+who, e.Text, mostShown)
	case Tool:
		if known, ok := m.Tools[e.ID]; ok && known.Text == e.Text {
			return "" // the same call, shown before
		}
		return line(markTool + who + oneLine(e.Tool) + " " + oneLine(e.Text))
	case ToolEnded:
		return showResult(e)
	case Asked:
		return m.showAsked(e.Request)
	case Answered:
		return m.showOver(e, " taken")
	case Withdrawn:
		return m.showOver(e, " withdrawn")
	case Retrying:
		return line(markNote + "a call of the model failed (" + oneLine(e.Text) + "); trying again")
	case Planned:
		if e.Subagent != "" {
			return ""
		}
		return showTodos(m.Todos, e)
	case Ended:
		return showEnd(e)
	default:
		return ""
	}
}

// showOver shows the end of an open request. The agent cannot have taken an answer that agency did not write.
func (q *requests) showOver(e *Event, how string) string {
	i := q.numberIndex(e.ID)
	if i < 0 {
		return ""
	}
	if q.Open[i].By == nil {
		how = " withdrawn"
	}
	return line(markNote + fmt.Sprint("request ", q.Open[i].Nth) + how)
}

// showResult shows the beginning of the result of a tool.
func showResult(e *Event) string {
	text := strings.TrimSpace(e.Text)
	if text == "" {
		return ""
	}
	if e.Failed {
		text = "failed: " + text
	}
	return block(markResult, text, mostResult)
}

// showAsked shows a new request.
func (q *requests) showAsked(r *Request) string {
	if q.openIndex(r.ID) >= 0 {
		return ""
	}
	who := ""
	if r.Subagent != "" {
		who = "(subagent) "
	}
	text := r.Text
	if r.Kind == agency.AsksPermission {
		text = "may it use " + oneLine(r.Tool) + "? " + text
	}
	out := block(fmt.Sprintf("%s%d: %s", markRequest, q.Asked+1, who), text, mostShown)
	if len(r.Options) > 0 {
		out += line("     " + oneLine(strings.Join(r.Options, " | ")))
	}
	return out + line("     id "+oneLine(r.ID))
}

// showEnd shows the end of a turn.
func showEnd(e *Event) string {
	switch {
	case e.Interrupted:
		return line(markNote + "interrupted")
	case e.Failed:
		return line(markNote + "the turn failed: " + oneLine(e.Text))
	default:
		return line(markNote + "turn ended")
	}
}

// showIntent returns what agency is about to write as people read it.
func (q *requests) showIntent(i *Intent) string {
	by := ""
	if i.By != "user" {
		by = "(" + i.By + ") "
	}
	switch i.Kind {
	case agency.SaysMessage:
		return block(markUs+by, i.Text, mostShown)
	case agency.SaysAnswer:
		return line(markUs + by + "request " + q.nth(i.ID) + ": " + oneLine(answerText(&i.Saying)))
	case agency.SaysInterrupt:
		return line(markUs + by + "interrupt")
	case agency.SaysSetting:
		return line(markUs + by + i.Setting.Words() + ": " + oneLine(i.Text))
	case agency.SaysTakeBack:
		return line(markUs + by + "take back the message " + oneLine(i.Text))
	case saysJoin:
		return line(markNote + "the agent's own terminal joined")
	case saysRefusal:
		return line(markNote + "agency does not know the request " + oneLine(i.Text) + ", and refused it")
	default:
		return ""
	}
}

// line returns a text as one line, safe for a terminal.
func line(text string) string { return plain.Visible(strings.TrimRight(text, " ")) + "\n" }

// block returns at most so many lines of a text, with a mark before the first one and the others indented.
func block(mark, text string, most int) string {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), " \n")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	left := len(lines) - most
	if left > 0 {
		lines = lines[:most]
	}
	var out strings.Builder
	indent := strings.Repeat(" ", len([]rune(mark)))
	for i, l := range lines {
		if i == 0 {
			out.WriteString(line(mark + l))
		} else {
			out.WriteString(line(indent + l))
		}
	}
	if left > 0 {
		out.WriteString(line(fmt.Sprintf("%s(%d more lines)", indent, left)))
	}
	return out.String()
}

// oneLine returns a text on one line, shortened.
func oneLine(text string) string { return shorten(plain.OneLine(text), mostRunes) }

// shorten returns the first characters of a text, with an ellipsis if there are more.
func shorten(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
