package harness

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"agency"
)

// escape is the key that refuses in every dialog that is answered here.
const escape = "\x1b"

// dialog is what a terminal asks, as far as it is read.
type dialog struct {
	kind    agency.RequestKind // empty when its words do not tell
	lines   []string           // above the options
	options []option
}

// option is one of the numbered choices of a dialog.
type option struct {
	key    string // the digit
	text   string
	chosen bool // the cursor stands on it
}

// parseOption reads a numbered choice with or without a cursor.
func parseOption(line string) (option, bool) {
	text, chosen := strings.TrimSpace(line), false
	for _, cursor := range []string{"❯ ", "› "} {
		if rest, ok := strings.CutPrefix(text, cursor); ok {
			text, chosen = strings.TrimSpace(rest), true
		}
	}
	key, text, ok := strings.Cut(text, ". ")
	if !ok || len(key) != 1 || key < "1" || key > "9" {
		return option{}, false
	}
	return option{key: key, text: strings.TrimSpace(text), chosen: chosen}, true
}

// Answer says which keys to press next on a terminal that shows these lines, to reply to a request; no keys mean that there is
// nothing to press before the terminal shows something else. The lines come with their colours, the top one first. shown is false
// when the terminal does not show a dialog with just this request. It is E_INPUT_REFUSED when the reply cannot be given there.
func Answer(kind agency.RunnerKind, lines []string, r *agency.Request, reply agency.Reply) (keys string, shown bool, err error) {
	answer := agents[kind].answer
	if answer == nil {
		return "", false, agency.Errorf(agency.CodeInputRefused, "agency cannot answer in the terminal of %s", kind).WithHint("agency attach RUN")
	}
	d := readTerminal(kind, lines)
	if d.about(r).level == notShown {
		return "", false, nil
	}
	keys, err = answer(d.dialog, r, reply)
	return keys, true, err
}

// Shown is which of the open requests the dialog of a terminal is about, from 0; -1 when it is about none of them, or can be about
// several that ask for different things. The lines come as for Answer.
func Shown(kind agency.RunnerKind, lines []string, requests []agency.Request) int {
	if agents[kind].answer == nil {
		return -1
	}
	d := readTerminal(kind, lines)
	matches := make([]match, len(requests))
	for i := range requests {
		matches[i] = d.about(&requests[i])
	}
	for i, m := range matches {
		alone := m.level > notShown
		for o, other := range matches {
			if other.level > notShown && !requests[o].Same(&requests[i]) && !m.explains(other) {
				alone = false
			}
		}
		if alone {
			return i
		}
	}
	return -1
}

// terminal is what a terminal shows of a dialog.
type terminal struct {
	shown []agency.Evidence
	*dialog
}

func readTerminal(kind agency.RunnerKind, lines []string) terminal {
	plain := make([]string, 0, len(lines))
	for _, line := range lines {
		plain = append(plain, ansi.Strip(line))
	}
	return terminal{agents[kind].screen(plain), agents[kind].dialog(plain, lines)}
}

// about is how the dialog shows a request.
func (t terminal) about(r *agency.Request) match {
	asks := slices.ContainsFunc(t.shown, func(e agency.Evidence) bool {
		// A dialog that was read in full has the id of what it asks.
		return e.Sign == agency.SignAsked && e.Kind == r.Kind && (e.ID == "" || e.ID == r.ID)
	})
	if !asks || t.dialog == nil || t.kind != "" && t.kind != r.Kind {
		return match{}
	}
	return t.dialog.about(r)
}

// dialogBelow makes the reader of dialogs whose first line begins with one of top.
func dialogBelow(top ...string) func(plain, styled []string) *dialog {
	return func(plain, _ []string) *dialog { return readDialog(plain, top) }
}

// readDialog reads the last dialog on a terminal: from a line that begins with one of top, over its text, to its options. It is
// nil when there is none. Above it stands what the agent did before, which can look like anything.
func readDialog(lines, top []string) *dialog {
	d, first := &dialog{}, 0
	for i, line := range lines {
		o, ok := parseOption(line)
		switch {
		case !ok:
		case o.key == "1":
			d.options, first = []option{o}, i
		default:
			d.options = append(d.options, o)
		}
	}
	for i := first - 1; i >= 0; i-- {
		if slices.ContainsFunc(top, func(text string) bool { return strings.HasPrefix(strings.TrimSpace(lines[i]), text) }) {
			d.lines = lines[i:first]
			return d
		}
	}
	return nil
}

// aboutLimit is how much of what is asked must stand in the terminal, in characters that are no space: a dialog cuts the rest off.
const aboutLimit = 40

// match is how a dialog shows what is asked.
type match struct {
	level level
	found string // what of it stands in the dialog, without spaces
}

type level int

const (
	notShown   level = iota
	shownPart        // the beginning of its text, the file that it names, or the tool of a server
	shownWhole       // its text, or the first line of it
	shownLine        // on a line of its own
)

// explains reports whether what was found of another request stands in the dialog because this one does.
func (m match) explains(other match) bool {
	return m.level > other.level && strings.Contains(m.found, other.found)
}

// about is how a dialog shows what is asked. Line breaks and indentation are the dialog's own.
func (d *dialog) about(r *agency.Request) match {
	shown := squeeze(strings.Join(d.lines, ""))
	first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	text := squeeze(first)
	switch {
	case text != "" && slices.ContainsFunc(d.lines, func(line string) bool { return squeeze(line) == text }):
		return match{shownLine, text}
	case text != "" && strings.Contains(shown, text):
		return match{shownWhole, text}
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
		runes := []rune(squeeze(name))
		name = string(runes[:min(len(runes), aboutLimit)])
		if name != "" && strings.Contains(shown, name) {
			return match{shownPart, name}
		}
	}
	return match{}
}

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// offers says that one of the options has just this text.
func (d *dialog) offers(text string) bool {
	return slices.ContainsFunc(d.options, func(o option) bool { return o.text == text })
}

// press is the key of the option with just this text: its digit, unless another one is known.
func (d *dialog) press(text, key string) (string, error) {
	i := slices.IndexFunc(d.options, func(o option) bool { return o.text == text })
	if i < 0 {
		return "", d.cannotAnswer(fmt.Sprintf("it does not offer %q", text))
	}
	return cmp.Or(key, d.options[i].key), nil
}

// choose is the next step of the answer to a question. An option is chosen by its digit, and confirmed where the cursor stands
// on it. Words of one's own go into the option that begins with own, if there is one: it is chosen, the words are typed, and
// confirmed when they stand there.
func (d *dialog) choose(text, own string) (string, error) {
	for _, o := range d.options {
		label, _, _ := strings.Cut(o.text, "  ") // a description follows
		switch {
		case !strings.EqualFold(squeeze(label), squeeze(text)):
		case o.chosen:
			return "\r", nil
		default:
			return o.key, nil
		}
	}
	for _, o := range d.options {
		switch {
		case own == "" || !strings.HasPrefix(o.text, own):
		case o.chosen:
			return text, nil
		default:
			return o.key, nil
		}
	}
	return "", d.cannotAnswer("it is none of the options")
}

// cannotAnswer refuses a reply that a dialog does not take.
func (d *dialog) cannotAnswer(why string) error {
	offered := make([]string, 0, len(d.options))
	for _, o := range d.options {
		offered = append(offered, o.text)
	}
	return agency.Errorf(agency.CodeInputRefused, "the dialog cannot be answered so: %s", why).
		WithDetail("options", offered).WithHint("agency attach RUN")
}
