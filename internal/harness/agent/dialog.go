package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"agency"
)

// Escape is the key that refuses in every dialog that agency answers.
const Escape = "\x1b"

// Dialog is a dialog on a terminal, as far as it was read.
type Dialog struct {
	Kind    agency.RequestKind // empty when the text does not show it
	Lines   []string           // above the options
	Options []Option
}

// Option is one of the numbered choices of a dialog.
type Option struct {
	Key    string // the digit
	Text   string // on its line
	Below  string // the lines below it, without spaces: its description, or the rest of a typed text
	Chosen bool   // the cursor is on it
}

// ParseOption reads a numbered choice with or without a cursor.
func ParseOption(line string) (Option, bool) {
	text, chosen := strings.TrimSpace(line), false
	for _, cursor := range []string{"❯ ", "› "} {
		if rest, ok := strings.CutPrefix(text, cursor); ok {
			text, chosen = strings.TrimSpace(rest), true
		}
	}
	key, text, ok := strings.Cut(text, ". ")
	if !ok || len(key) != 1 || key < "1" || key > "9" {
		return Option{}, false
	}
	return Option{Key: key, Text: strings.TrimSpace(text), Chosen: chosen}, true
}

// ParseOptions reads numbered choices with parse, and what belongs to each: the lines below it, up to
// an empty one or a rule.
func ParseOptions(lines []string, parse func(line string) (Option, bool)) []Option {
	var options []Option
	belongs := false
	for _, line := range lines {
		o, ok := parse(line)
		text := Squeeze(line)
		switch {
		case ok:
			options, belongs = append(options, o), true
		case text == "" || strings.HasPrefix(text, "──"):
			belongs = false
		case belongs:
			options[len(options)-1].Below += text
		}
	}
	return options
}

// DialogBelow returns a reader of dialogs whose first line begins with one of top.
func DialogBelow(top ...string) func(plain, styled []string) *Dialog {
	return func(plain, _ []string) *Dialog { return readDialog(plain, top) }
}

// readDialog reads the last dialog on a terminal: from a line that begins with one of top, over its
// text, to its options. It returns nil when there is none. Above the dialog is the agent's earlier
// output, which can look like anything.
func readDialog(lines, top []string) *Dialog {
	first := 0
	for i, line := range lines {
		if o, ok := ParseOption(line); ok && o.Key == "1" {
			first = i
		}
	}
	for i := first - 1; i >= 0; i-- {
		if slices.ContainsFunc(top, func(text string) bool { return strings.HasPrefix(strings.TrimSpace(lines[i]), text) }) {
			return &Dialog{Lines: lines[i:first], Options: ParseOptions(lines[first:], ParseOption)}
		}
	}
	return nil
}

// aboutLimit is how much of a request must be on the terminal, in characters without spaces: a
// dialog cuts off the rest.
const aboutLimit = 40

// Match is how well a dialog shows a request.
type Match struct {
	level level
	found string // the part of it in the dialog, without spaces
}

// level is how much of a request is shown.
type level int

const (
	notShown   level = iota
	shownPart        // the beginning of its text, the file that it names, or the tool of a server
	shownWhole       // its text, or the first line of it
	shownLine        // on its own line
)

// Shown reports whether the dialog shows the request at all.
func (m Match) Shown() bool { return m.level > notShown }

// Explains reports whether the dialog shows this request, and seems to show another one only because a part
// of this one looks like it.
func (m Match) Explains(other Match) bool {
	return m.level > other.level && strings.Contains(m.found, other.found)
}

// About returns how well a dialog shows a request. It ignores line breaks and indentation, which
// are the dialog's own.
func (d *Dialog) About(r *agency.Request) Match {
	shown := Squeeze(strings.Join(d.Lines, ""))
	first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	text := Squeeze(first)
	switch {
	case text != "" && slices.ContainsFunc(d.Lines, func(line string) bool { return Squeeze(line) == text }):
		return Match{shownLine, text}
	case text != "" && strings.Contains(shown, text):
		return Match{shownWhole, text}
	}
	names := []string{first}
	if strings.Contains(first, "/") && !strings.ContainsAny(first, " \t") {
		names = append(names, path.Base(first))
	}
	for line := range strings.Lines(r.Text) { // a patch
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			names = append(names, path.Base(strings.TrimSpace(file)))
		}
	}
	if i := strings.LastIndex(r.Tool, "__"); i >= 0 {
		names = append(names, r.Tool[i+len("__"):])
	}
	for _, name := range names {
		runes := []rune(Squeeze(name))
		name = string(runes[:min(len(runes), aboutLimit)])
		if name != "" && strings.Contains(shown, name) {
			return Match{shownPart, name}
		}
	}
	return Match{}
}

// Squeeze returns a text without spaces and control characters.
func Squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// Offers reports whether one of the options has exactly this text.
func (d *Dialog) Offers(text string) bool {
	return slices.ContainsFunc(d.Options, func(o Option) bool { return o.Text == text })
}

// Press returns the key of the option with exactly this text: its digit, unless another key is
// known.
func (d *Dialog) Press(text, key string) (string, error) {
	i := slices.IndexFunc(d.Options, func(o Option) bool { return o.Text == text })
	if i < 0 {
		return "", d.CannotAnswer(fmt.Sprintf("it does not offer %q", text))
	}
	return cmp.Or(key, d.Options[i].Key), nil
}

// Choose returns the next step of the answer to a question. An option is chosen by its digit, and
// confirmed when the cursor is on it. A free-form answer goes into the option that begins with own,
// if there is one: the option is chosen, the text is typed, and confirmed when all of it shows, on
// one line or on several.
func (d *Dialog) Choose(text, own string) (string, error) {
	for _, o := range d.Options {
		label, _, _ := strings.Cut(o.Text, "  ") // a description follows
		switch {
		case !strings.EqualFold(Squeeze(label), Squeeze(text)):
		case o.Chosen:
			return "\r", nil
		default:
			return o.Key, nil
		}
	}
	for _, o := range d.Options {
		switch {
		case own == "" || !strings.HasPrefix(o.Text, own):
		case o.Chosen:
			return text, nil
		default:
			return o.Key, nil
		}
	}
	for _, o := range d.Options { // the typed text has replaced own
		typed, all := Squeeze(o.Text)+o.Below, Squeeze(text)
		switch {
		case own == "" || !o.Chosen || !strings.HasPrefix(all, typed):
		case typed == all:
			return "\r", nil
		default:
			return "", nil // the rest is not drawn yet
		}
	}
	return "", d.CannotAnswer("it is none of the options")
}

// CannotAnswer refuses a reply that a dialog does not take.
func (d *Dialog) CannotAnswer(why string) error {
	offered := make([]string, 0, len(d.Options))
	for _, o := range d.Options {
		offered = append(offered, o.Text)
	}
	return agency.Errorf(agency.CodeInputRefused, "agency cannot give this answer in the dialog: %s", why).
		WithDetail("options", offered).WithHint("agency attach RUN")
}
