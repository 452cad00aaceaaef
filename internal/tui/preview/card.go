package preview

import (
	"regexp"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// Card returns what a run waits for, word for word, and the keys that answer it; nothing if the run waits for
// nothing. takes is false while the keys do nothing yet, because the request has only just appeared: then they
// are dim. key returns the key of a binding by its name. The card has at most rows+1 rows, unless the keys alone
// need more. whole reports whether it shows all of the request, with all its options.
func Card(r *api.Run, options []string, takes bool, key func(name string) string, width, rows int) (card []cell.Line, whole bool) {
	if !r.NeedsYou() {
		return nil, true
	}
	text, style := view.Summary(r), cell.Bold
	if q := r.Request; q != nil {
		text = q.Text
		if q.Kind == agency.AsksPermission && q.Tool != "" {
			text = strings.TrimSpace(q.Tool + ": " + q.Text)
		}
		if q.Subagent != "" {
			text = "(" + q.Subagent + ") " + text
		}
	}
	if text == "" {
		text = "its turn ended, and it did not say what it needs"
	}
	bright := cell.Coloured(view.Yellow)
	if !takes {
		bright = cell.Dim
	}
	keys := keyRows(answers(r, options, key), bright, width)
	room := max(rows+1-len(keys), 1)
	whole = len(cell.Wrap(style, text, 1, width, room+1)) <= room && len(keys) <= rows && (r.Request == nil || !r.Request.Cut())
	return append(cell.Wrap(style, text, 1, width, room), keys...), whole
}

// keyRows returns keys with what each does, in as many rows as they need.
func keyRows(keys [][2]string, bright cell.Style, width int) []cell.Line {
	rows := []cell.Line{cell.Of(cell.Plain, " ")}
	for _, k := range keys {
		last := len(rows) - 1
		next := rows[last].Add(bright, k[0]).Add(cell.Dim, " "+k[1]+"  ")
		if next.Width()-2 > width && len(rows[last]) > 1 {
			rows = append(rows, cell.Of(cell.Plain, " ").Add(bright, k[0]).Add(cell.Dim, " "+k[1]+"  "))
			continue
		}
		rows[last] = next
	}
	return rows
}

// answers returns the keys that answer a run, and what each does.
func answers(r *api.Run, options []string, key func(name string) string) [][2]string {
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		return [][2]string{{key("attach"), "answer it in its terminal"}}
	case r.Request != nil && r.Request.Kind == agency.AsksPermission:
		return [][2]string{{key("allow"), "allow"}, {key("reject"), "reject"}}
	case view.PromptID(r) == "":
		return [][2]string{{key("attach"), "attach"}, {key("send"), "send"}}
	}
	keys := [][2]string{}
	for i, option := range options {
		keys = append(keys, [2]string{string(rune('1' + i)), term.Fit(option, 24)})
	}
	if r.Request != nil {
		keys = append(keys, [2]string{key("reject"), "no answer"})
	}
	return append(keys, [2]string{key("reply"), "reply"})
}

// option matches a numbered line of a dialog, after its frame and cursor.
var option = regexp.MustCompile(`^[\s│┃|❯›>*]*([1-9])[.)] (.+)$`)

// Options returns the numbered options of the dialog that a screen shows, without their descriptions. If
// there are several dialogs, they are those of the last one.
func Options(s *agency.Screen) []string {
	found := []string{}
	for _, row := range s.Rows {
		part := option.FindStringSubmatch(strings.TrimRight(cell.Line(row).Text(), " │┃|"))
		switch {
		case part == nil:
		case part[1] == "1":
			found = []string{label(part[2])}
		case part[1] == string(rune('1'+len(found))):
			found = append(found, label(part[2]))
		}
	}
	return found
}

// label returns an option without its description, which follows two spaces.
func label(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "  ")
	return term.SafeLine(text)
}
