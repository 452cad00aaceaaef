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
	plain := make([]string, 0, len(lines))
	for _, line := range lines {
		plain = append(plain, ansi.Strip(line))
	}
	asks := slices.ContainsFunc(agents[kind].screen(plain), func(e agency.Evidence) bool {
		// A dialog that was read in full has the id of what it asks.
		return e.Sign == agency.SignAsked && e.Kind == r.Kind && (e.ID == "" || e.ID == r.ID)
	})
	d := agents[kind].dialog(plain, lines)
	if !asks || d == nil || d.kind != "" && d.kind != r.Kind || !d.about(r) {
		return "", false, nil
	}
	keys, err = answer(d, r, reply)
	return keys, true, err
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

// aboutLimit is how much of what is asked must stand in the terminal, in characters that are no space.
const aboutLimit = 40

// about says that a dialog shows what is asked: the beginning of its text, the file that it names, or the tool of a server.
// Line breaks and indentation are the dialog's own.
func (d *dialog) about(r *agency.Request) bool {
	shown := squeeze(strings.Join(d.lines, ""))
	text, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	names := []string{text}
	if strings.Contains(text, "/") && !strings.ContainsAny(text, " \t") {
		names = append(names, path.Base(text))
	}
	for line := range strings.Lines(r.Text) { // a patch
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			names = append(names, path.Base(strings.TrimSpace(file)))
		}
	}
	if i := strings.LastIndex(r.Tool, "__"); i >= 0 {
		names = append(names, r.Tool[i+len("__"):])
	}
	return slices.ContainsFunc(names, func(name string) bool {
		name = squeeze(name)
		if runes := []rune(name); len(runes) > aboutLimit {
			name = string(runes[:aboutLimit])
		}
		return name != "" && strings.Contains(shown, name)
	})
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
