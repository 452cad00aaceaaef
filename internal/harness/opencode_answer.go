package harness

import (
	"regexp"
	"slices"
	"strings"

	"agency"
)

// The words of OpenCode's dialogs by which they are known.
const (
	opencodeLeave = "△ Permission required"
	opencodeAllow = "Allow once"
	opencodeHint  = "↑↓ select  enter submit  esc dismiss"
	opencodeOwn   = "Type your own answer"
)

// opencodeIndent is where nothing of a dialog begins, but a column beside it does.
const opencodeIndent = 20

// opencodeChoices are the choices of a permission, side by side.
var opencodeChoices = []string{opencodeAllow, "Allow always", "Reject"}

// opencodeDialog reads the dialog at the bottom of a terminal. The last of the choices is known by its colour alone.
func opencodeDialog(plain, styled []string) *dialog {
	for i, shown := range slices.Backward(plain) {
		line, framed := opencodeLine(shown)
		switch {
		case framed && line == opencodeHint:
			return opencodeQuestion(plain[:i])
		case framed && strings.HasPrefix(line, strings.Join(opencodeChoices, "   ")) && strings.Contains(shown, "enter confirm"):
			return opencodePermission(plain[:i], highlighted(styled[i], opencodeChoices))
		}
	}
	return nil
}

// opencodeLine is what stands on a line of a dialog, without the frame before it and the column beside it.
func opencodeLine(line string) (text string, framed bool) {
	text, framed = strings.CutPrefix(strings.TrimSpace(line), "┃")
	if strings.HasPrefix(text, strings.Repeat(" ", opencodeIndent)) {
		return "", framed
	}
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, opencodeAllow) {
		text, _, _ = strings.Cut(text, "    ")
	}
	return text, framed
}

// opencodePermission reads what stands above the choices, of which the cursor stands on one; -1 is not known.
func opencodePermission(above []string, chosen int) *dialog {
	d := &dialog{kind: agency.AsksPermission}
	for i, text := range opencodeChoices {
		d.options = append(d.options, option{text: text, chosen: i == chosen})
	}
	for _, shown := range slices.Backward(above) {
		line, framed := opencodeLine(shown)
		if !framed {
			return nil
		}
		d.lines = append(d.lines, line)
		if line == opencodeLeave {
			slices.Reverse(d.lines)
			return d
		}
	}
	return nil
}

// opencodeQuestion reads a question and its options, which stand above the hint.
func opencodeQuestion(above []string) *dialog {
	var lines []string
	for _, shown := range slices.Backward(above) {
		line, framed := opencodeLine(shown)
		if !framed {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	d := &dialog{kind: agency.AsksQuestion}
	for i, line := range lines {
		o, ok := parseOption(line)
		switch {
		case !ok && len(d.options) == 0:
			d.lines = append(d.lines, line)
		case !ok:
		case o.text == opencodeOwn:
			// What is typed stands below it, or else a word that asks for it.
			if typed := strings.Join(lines[i+1:], ""); typed == opencodeOwn {
				o.chosen = true
			} else if typed != "" {
				o.text, o.chosen = typed, true
			}
			fallthrough
		default:
			d.options = append(d.options, o)
		}
	}
	if len(d.options) == 0 {
		return nil
	}
	return d
}

// opencodeAnswer answers OpenCode's dialogs. Enter is pressed only where the cursor is seen to stand on the answer; Escape
// refuses, and ends the turn with it. A digit answers a question at once.
func opencodeAnswer(d *dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return escape, nil
	}
	if r.Kind == agency.AsksQuestion {
		last := d.options[len(d.options)-1]
		if last.chosen && last.text != opencodeOwn && strings.HasPrefix(squeeze(reply.Text), squeeze(last.text)) && squeeze(reply.Text) != squeeze(last.text) {
			return "", nil // it does not show yet all that was typed
		}
		return d.choose(reply.Text, opencodeOwn)
	}
	switch {
	case d.options[0].chosen:
		return "\r", nil
	case slices.ContainsFunc(d.options, func(o option) bool { return o.chosen }):
		return left, nil
	default:
		return "", d.cannotAnswer("it does not show which of its choices is the current one")
	}
}

// left is the key that moves the cursor to the choice before.
const left = "\x1b[D"

// sgr is a sequence that sets colours.
var sgr = regexp.MustCompile(`\x1b\[([0-9;:]*)m`)

// highlighted is the one of some texts on a line whose background differs from that of all others; -1 when that is none.
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

// background is the colour behind what follows a text.
func background(text string) string {
	colour := ""
	for _, set := range sgr.FindAllStringSubmatch(text, -1) {
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
