package opencode

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
	"agency/internal/harness/agent"
)

// The texts by which OpenCode's dialogs are recognised.
const (
	leave = "△ Permission required"
	allow = "Allow once"
	hint  = "↑↓ select  enter submit  esc dismiss"
	own   = "Type your own answer"
)

// indent is a column at which no part of a dialog begins, but a column beside it does.
const indent = 20

// choices are the choices of a permission, side by side.
var choices = []string{allow, "Allow always", "Reject"}

// dialog reads the dialog at the bottom of a terminal. The selected choice is known only by its
// colour.
func dialog(plain, styled []string) *agent.Dialog {
	for i, shown := range slices.Backward(plain) {
		line, framed := framedLine(shown)
		switch {
		case framed && line == hint:
			return question(plain[:i])
		case framed && strings.HasPrefix(line, strings.Join(choices, "   ")) && strings.Contains(shown, "enter confirm"):
			return permission(plain[:i], highlighted(styled[i], choices))
		}
	}
	return nil
}

// framedLine returns the text of a line of a dialog, without the frame before it and the column
// beside it.
func framedLine(line string) (text string, framed bool) {
	text, framed = strings.CutPrefix(strings.TrimSpace(line), "┃")
	if strings.HasPrefix(text, strings.Repeat(" ", indent)) {
		return "", framed
	}
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, allow) {
		text, _, _ = strings.Cut(text, "    ")
	}
	return text, framed
}

// permission reads the lines above the choices, of which the cursor is on one; -1 means unknown.
func permission(above []string, chosen int) *agent.Dialog {
	d := &agent.Dialog{Kind: agency.AsksPermission}
	for i, text := range choices {
		d.Options = append(d.Options, agent.Option{Text: text, Chosen: i == chosen})
	}
	for _, shown := range slices.Backward(above) {
		line, framed := framedLine(shown)
		if !framed {
			return nil
		}
		d.Lines = append(d.Lines, line)
		if line == leave {
			slices.Reverse(d.Lines)
			return d
		}
	}
	return nil
}

// question reads a question and its options, which are above the hint.
func question(above []string) *agent.Dialog {
	var lines []string
	for _, shown := range slices.Backward(above) {
		line, framed := framedLine(shown)
		if !framed {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	d := &agent.Dialog{Kind: agency.AsksQuestion}
	for i, line := range lines {
		o, ok := agent.ParseOption(line)
		switch {
		case !ok && len(d.Options) == 0:
			d.Lines = append(d.Lines, line)
		case !ok:
		case o.Text == own:
			// The typed text is below it, or else a placeholder.
			if typed := strings.Join(lines[i+1:], ""); typed == own {
				o.Chosen = true
			} else if typed != "" {
				o.Text, o.Chosen = typed, true
			}
			fallthrough
		default:
			d.Options = append(d.Options, o)
		}
	}
	if len(d.Options) == 0 {
		return nil
	}
	return d
}

// answer answers OpenCode's dialogs. Enter is pressed only where the cursor is visibly on the
// answer; Escape refuses, and ends the turn with it. A digit answers a question at once.
func answer(d *agent.Dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return agent.Escape, nil
	}
	if r.Kind == agency.AsksQuestion {
		last := d.Options[len(d.Options)-1]
		if last.Chosen && last.Text != own && strings.HasPrefix(agent.Squeeze(reply.Text), agent.Squeeze(last.Text)) && agent.Squeeze(reply.Text) != agent.Squeeze(last.Text) {
			return "", nil // it does not show the whole typed text yet
		}
		return d.Choose(reply.Text, own)
	}
	switch {
	case d.Options[0].Chosen:
		return "\r", nil
	case slices.ContainsFunc(d.Options, func(o agent.Option) bool { return o.Chosen }):
		return left, nil
	default:
		return "", d.CannotAnswer("it does not show which of its choices is the current one")
	}
}

// left is the key that moves the cursor to the previous choice.
const left = "\x1b[D"

// sgr matches a sequence that sets colours.
var sgr = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[([0-9;:]*)m`) })

// highlighted returns the index of the text on a line whose background differs from that of all
// others; -1 when there is none.
func highlighted(line string, texts []string) int {
	backgrounds := make([]string, len(texts))
	from := 0
	for i, text := range texts {
		at := strings.Index(line[from:], text)
		if at < 0 {
			return -1
		}
		from += at + len(text)
		backgrounds[i] = background(line[:from-len(text)])
	}
	found := -1
	for i, colour := range backgrounds {
		same := 0
		for _, other := range backgrounds {
			if other == colour {
				same++
			}
		}
		if same > 1 {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// background returns the background colour after a text.
func background(text string) string {
	colour := ""
	for _, set := range sgr().FindAllStringSubmatch(text, -1) {
		codes := strings.FieldsFunc(set[1], func(r rune) bool { return r == ';' || r == ':' })
		if len(codes) == 0 {
			colour = ""
		}
		for i := 0; i < len(codes); i++ {
			switch code := codes[i]; {
			case code == "0" || code == "49":
				colour = ""
			case code == "7":
				colour = "reverse"
			case code == "27":
				colour = ""
			case code == "38" || code == "48":
				length := map[string]int{"5": 3, "2": 5}[at(codes, i+1)]
				end := min(i+max(length, 1), len(codes))
				if code == "48" {
					colour = strings.Join(codes[i:end], ";")
				}
				i = end - 1
			case len(code) == 2 && code[0] == '4' || len(code) == 3 && code[:2] == "10":
				colour = code
			}
		}
	}
	return colour
}

func at(codes []string, i int) string {
	if i < len(codes) {
		return codes[i]
	}
	return ""
}
