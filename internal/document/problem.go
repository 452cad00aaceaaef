package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agency"
	"agency/internal/plain"
)

// Problem is one problem of a document, with its place. As the error of a check, its text continues
// a sentence that begins with the name of the value.
type Problem struct {
	At       Position
	Variable string // the environment variable that is wrong, instead of the document
	Text     string
	Hint     string // a way out; empty for none
}

// Error returns the text alone.
func (p *Problem) Error() string { return p.Text }

// Hinted returns an error with a way out.
func Hinted(err error, way string) error { return &Problem{Text: err.Error(), Hint: way} }

// hint returns the way out of an error; "" when there is none.
func hint(err error) string {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Hint
	}
	return ""
}

// Problems collects the problems of a document.
type Problems struct {
	Name string // of the document, in messages
	list []Problem
}

// Add adds a problem at a place.
func (p *Problems) Add(at Position, hint, format string, args ...any) {
	p.list = append(p.list, Problem{At: at, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// AddVariable adds a problem with an environment variable.
func (p *Problems) AddVariable(variable string, err error) {
	p.list = append(p.list, Problem{Variable: variable, Text: err.Error(), Hint: hint(err)})
}

// Refuse adds the error of a check for the value of the given name. Its place is that of the error,
// or else the value's.
func (p *Problems) Refuse(v *Value, name string, err error) {
	at := v.At
	if own, ok := errors.AsType[*Problem](err); ok {
		at = cmp.Or(own.At, at)
	}
	p.Add(at, hint(err), "%s %v", name, err)
}

// AddFaults adds the faults that a parser reported, except on lines with a known problem, whose
// text is better.
func (p *Problems) AddFaults(faults []Problem) {
	for _, fault := range faults {
		if !slices.ContainsFunc(p.list, func(known Problem) bool { return known.At.Line == fault.At.Line }) {
			p.list = append(p.list, fault)
		}
	}
}

// Len returns how many problems there are.
func (p *Problems) Len() int { return len(p.list) }

// Place returns a place of the document as an error names it: name:line:column.
func (p *Problems) Place(at Position) string {
	if at.Line == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s:%d:%d", p.Name, at.Line, at.Column)
}

func (p *Problems) message(one Problem) string {
	if one.Variable != "" {
		return one.Variable + " " + Printable(one.Text)
	}
	return p.Place(one.At) + ": " + Printable(one.Text)
}

// Err returns the first problem as an error, with up to 100 of them in its detail "problems", in
// the order of the document; those of the environment come last. Without a problem it returns nil.
func (p *Problems) Err(code agency.Code) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(len(a.Variable), len(b.Variable)), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	all := []string{}
	for _, one := range p.list[:min(len(p.list), 100)] {
		all = append(all, WithHint(p.message(one), one.Hint))
	}
	first := agency.Errorf(code, "%s", p.message(p.list[0])).WithDetail("problems", all)
	first.Hint = p.list[0].Hint
	return first
}

// WithHint returns a line followed by its way out in parentheses.
func WithHint(line, hint string) string {
	if hint == "" {
		return line
	}
	return line + " (" + hint + ")"
}

// DidYouMean returns a question for the known word nearest to the written one, or "" when none is
// near. shown returns a word in the form for messages.
func DidYouMean(word string, known []string, shown func(string) string) string {
	near := plain.Nearest(word, known)
	if near == "" {
		return ""
	}
	return "did you mean " + shown(near) + "?"
}

// Fields returns the fields of a table whose keys are known, each once. Other keys go to unknown; a
// duplicate key is a problem. named returns a key in the form for messages.
func (p *Problems) Fields(table *Value, known []string, named func(key string) string, unknown func(f *Field)) []*Field {
	first, isKnown := map[string]*Field{}, map[string]bool{}
	for _, key := range known {
		isKnown[key] = true
	}
	var fields []*Field
	for _, f := range table.Fields {
		switch before := first[f.Key]; {
		case !isKnown[f.Key]:
			unknown(f)
		case before != nil:
			what := "key"
			if f.Value.Kind == Table {
				what = "table"
			}
			p.Add(f.At, "keep one of the two", "the %s %s is there twice, first on line %d", what, named(f.Key), before.At.Line)
		default:
			first[f.Key] = f
			fields = append(fields, f)
		}
	}
	return fields
}

// Quoted quotes what a document holds for a message, and shortens it.
func Quoted(s string) string { return strconv.Quote(plain.Clip(s)) }

// Printable replaces characters that a terminal would not show unchanged.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
