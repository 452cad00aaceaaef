package copilot

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// own is the key of the option, or the field, for a free-form answer. Its text is the content of
// the field.
const own = "own"

// The texts of a question's dialog.
const (
	asksHead  = "Copilot needs information."
	asksHint  = "enter accept"
	otherHead = "Other (type your answer"
	otherHint = "Type your answer..."
)

// dialog reads the dialog on a terminal: numbered choices in a frame, or a question.
func dialog(lines []string) *agent.Dialog {
	bare := make([]string, 0, len(lines))
	for _, line := range lines {
		bare = append(bare, agent.Bare(line))
	}
	if d := asked(bare); d != nil {
		return d
	}
	d := agent.DialogBelow("╭──")(bare, nil)
	if d != nil {
		d.Kind = agency.AsksPermission
	}
	return d
}

// asked reads a question: its text, then the name of the value with its choices, or a field to type
// into. For a form with several of these it returns no options.
func asked(lines []string) *agent.Dialog {
	head := lastOf(lines, func(line string) bool { return line == asksHead })
	hint := lastOf(lines, func(line string) bool { return strings.Contains(line, asksHint) })
	if head < 0 || hint < head {
		return nil
	}
	body, below := agent.Trimmed(lines[head+1:hint]), agent.Trimmed(lines[hint+1:])
	first := lastOf(body, agent.Blank) + 1 // the last block
	d := &agent.Dialog{Kind: agency.AsksQuestion, Lines: body[:first]}
	if hint := lines[hint]; strings.Contains(hint, "tab next") || strings.Contains(hint, "space") || first == len(body) {
		return d
	}
	block := body[first:]
	if slices.ContainsFunc(block, agent.Rule) {
		text, drawn := typed(block)
		d.Options = []agent.Option{{Key: own, Text: text, Chosen: drawn}}
		return d
	}
	for _, line := range block[1:] {
		o := agent.Option{Text: line}
		if rest, ok := strings.CutPrefix(line, "❯ "); ok {
			o.Text, o.Chosen = rest, true
		}
		if strings.HasPrefix(o.Text, otherHead) {
			text, drawn := typed(below)
			o.Key, o.Text, o.Chosen = own, text, o.Chosen && drawn
		}
		d.Options = append(d.Options, o)
	}
	return d
}

func lastOf(lines []string, is func(line string) bool) int {
	for i, line := range slices.Backward(lines) {
		if is(line) {
			return i
		}
	}
	return -1
}

// typed returns the text of the field among these lines, between two rules.
func typed(lines []string) (text string, drawn bool) {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "❯") })
	if i < 1 || !agent.Rule(lines[i-1]) {
		return "", false
	}
	more := lines[i+1:]
	end := slices.IndexFunc(more, agent.Rule)
	if end < 0 || end+1 < len(more) { // nothing is below a field: the screen is being redrawn
		return "", false
	}
	text = agent.Joined(strings.TrimPrefix(lines[i], "❯"), more[:end])
	if text == otherHint {
		text = ""
	}
	return text, true
}

// answer answers Copilot's dialogs. In a dialog for permission a digit chooses at once; the options
// between "Yes" and "No" permit more than this call. In a question the cursor is moved, one step at
// a time, and Enter takes the option under it.
func answer(d *agent.Dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return agent.Escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.Press("Yes", "")
	}
	if len(d.Options) == 0 {
		return "", d.CannotAnswer("it asks for several answers at once")
	}
	cursor := slices.IndexFunc(d.Options, func(o agent.Option) bool { return o.Chosen })
	target := slices.IndexFunc(d.Options, func(o agent.Option) bool {
		return o.Key != own && strings.EqualFold(agent.Squeeze(o.Text), agent.Squeeze(reply.Text))
	})
	if target < 0 {
		target = slices.IndexFunc(d.Options, func(o agent.Option) bool { return o.Key == own })
	}
	switch {
	case target < 0:
		return "", d.CannotAnswer("it is none of the options")
	case cursor < 0:
		return "", nil // it is being drawn
	case cursor != target:
		return arrow(cursor, target), nil
	case d.Options[target].Key == own:
		return fill(d, d.Options[target].Text, reply.Text)
	default:
		return "\r", nil
	}
}

// arrow returns the key that moves the cursor by one. The two codes of each key alternate, so that
// the next step is never taken for the previous one.
func arrow(cursor, target int) string {
	key := "A"
	if target > cursor {
		key = "B"
	}
	if cursor%2 == 0 {
		return "\x1b[" + key
	}
	return "\x1bO" + key
}

// fill types a text into a field, and confirms it when the field shows it.
func fill(d *agent.Dialog, has, text string) (string, error) {
	has, want := agent.Squeeze(has), agent.Squeeze(text)
	switch {
	case has == "":
		return text, nil
	case has == want:
		return "\r", nil
	case strings.HasPrefix(want, has), strings.HasPrefix(has, want):
		return "", nil // it is being drawn
	default:
		return "", d.CannotAnswer("its field holds another text")
	}
}
