// Package document reads TOML and YAML into one tree, in which every value has its place, and
// collects the problems of a document.
package document

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"agency/internal/plain"
)

// Position is a place in a document. Lines and columns count from 1; a column of TOML counts bytes.
// The zero Position means no place.
type Position struct{ Line, Column int }

// positionAt returns the place of a byte.
func positionAt(data []byte, offset int) Position {
	before := data[:offset]
	return Position{1 + bytes.Count(before, []byte{'\n'}), offset - bytes.LastIndexByte(before, '\n')}
}

// Kind is the type of a value.
type Kind int

// The kinds of values.
const (
	Nothing Kind = iota // null of YAML
	Text
	Integer
	Float
	Boolean
	Time
	List
	Table
)

// Value is one value of a document.
type Value struct {
	Kind Kind
	// At is where the value begins; in TOML, where its key does.
	At   Position
	Text string // the meaning of a text; the spelling of any other single value
	// Plain is set for YAML without quotes, block or brackets: 001 may be a text or a number.
	Plain  bool
	Items  []*Value // of a list, in order
	Fields []*Field // of a table, in order; a duplicate key has two entries

	// Header is the place of the line [table] that begins a TOML table. It is zero for a table
	// without one.
	Header Position
	// Span is where the value of a key of TOML begins and ends, in bytes; zero for a table or a list
	// of tables that has lines of its own.
	Span [2]int

	last map[string]*Value // of a table of TOML, by key
}

// Field is one key of a table with its value.
type Field struct {
	Key   string
	At    Position
	Value *Value
}

// Lookup returns the value that the keys lead to from table to table, or nil. Of a duplicate key it
// takes the first.
func (v *Value) Lookup(keys ...string) *Value {
	for _, key := range keys {
		i := slices.IndexFunc(v.Fields, func(f *Field) bool { return f.Key == key })
		if i < 0 {
			return nil
		}
		v = v.Fields[i].Value
	}
	return v
}

// Words names the value in a message. It quotes no text of TOML, since a text can be a secret.
func (v *Value) Words() string {
	switch v.Kind {
	case Nothing:
		return "nothing"
	case List:
		if len(v.Items) > 0 && v.Items[0].Header.Line > 0 {
			return "a list of tables"
		}
		return "a list"
	case Table:
		return "a table"
	default: // one value
	}
	switch {
	case v.Plain:
		return strconv.Quote(plain.Clip(v.Text))
	case v.Kind == Text:
		return "text"
	case v.Kind == Time:
		return "a date or time"
	default:
		return v.Text
	}
}

// The methods below read a value as a certain type. Their errors continue a sentence that begins
// with the name of the value.

// AsString returns a text. Plain YAML counts as one, as it is written.
func (v *Value) AsString() (string, error) {
	switch {
	case v.Kind == Nothing:
		return "", Hinted(fmt.Errorf("has no value"), "leave the key out, or give it a value")
	case v.Kind == Text, v.Plain && v.Kind != List && v.Kind != Table:
		return v.Text, nil
	case v.Plain:
		return "", Hinted(v.mustBe("text"), "a text that looks like a list or a table needs quotes")
	}
	return "", v.mustBe("text")
}

// AsBool returns true or false.
func (v *Value) AsBool() (bool, error) {
	if v.Kind != Boolean {
		return false, v.mustBeOne("true or false")
	}
	return v.Text == "true" || v.Text == "True" || v.Text == "TRUE", nil
}

// AsInt returns a whole number. One that does not fit into an int64 becomes the nearest that does.
func (v *Value) AsInt() (int64, error) {
	base := 0
	if v.Plain {
		base = 10 // 010 is ten
	}
	n, err := strconv.ParseInt(v.Text, base, 64)
	whole := v.Kind == Integer || v.Plain && err == nil
	if !whole || err != nil && n != math.MaxInt64 && n != math.MinInt64 {
		return 0, v.mustBeOne("a whole number")
	}
	return n, nil
}

// AsDuration returns a duration such as 90s or 15m.
func (v *Value) AsDuration() (time.Duration, error) {
	const form = `must be a duration such as "90s" or "15m", not `
	switch {
	case v.Kind == Text || v.Plain:
		d, err := time.ParseDuration(v.Text)
		if err != nil || v.Text == "" {
			return 0, fmt.Errorf("%s%q", form, plain.Clip(v.Text))
		}
		return d, nil
	case v.Kind == Nothing, v.Kind == List, v.Kind == Table:
		return 0, fmt.Errorf("%s%s", form, v.Words())
	}
	return 0, v.mustBe(`a duration in quotes, such as "90s" or "15m"`)
}

// AsStrings returns a list of texts that check accepts; an empty one is not nil.
func (v *Value) AsStrings(check func(string) error) ([]string, error) {
	if v.Kind != List {
		err := v.mustBe("a list of texts")
		if v.Plain && v.Kind != Table && v.Kind != Nothing {
			err = Hinted(err, "write ["+Printable(v.Text)+"]")
		}
		return nil, err
	}
	list := make([]string, 0, len(v.Items))
	for i, item := range v.Items {
		text, err := item.AsString()
		if err != nil {
			return nil, &Problem{At: item.At, Text: fmt.Sprintf("must be a list of texts, but item %d is %s", i+1, item.Words()), Hint: hint(err)}
		}
		if err := check(text); err != nil {
			return nil, &Problem{At: item.At, Text: fmt.Sprintf("is wrong at item %d: it %v", i+1, err), Hint: hint(err)}
		}
		list = append(list, text)
	}
	return list, nil
}

func (v *Value) mustBe(what string) error { return fmt.Errorf("must be %s, not %s", what, v.Words()) }

// mustBeOne quotes a text, since the text of a value that should be a number or a boolean is not a
// secret.
func (v *Value) mustBeOne(what string) error {
	if v.Kind == Text && !v.Plain {
		return fmt.Errorf("must be %s, not the text %q", what, plain.Clip(v.Text))
	}
	return v.mustBe(what)
}
