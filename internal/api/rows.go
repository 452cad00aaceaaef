package api

import (
	"bytes"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency"
)

// RunRows is the response of run.list as the daemon writes it: a ListRunsResponse whose runs are
// encoded one after another, with the fields that the client asked for. Encoding all of them first
// would take memory and time before the first byte.
type RunRows struct {
	fields []rowField
	rows   iter.Seq[*Run]
	total  int
}

// NewRunRows returns the response with these runs, each of which is only read until the next one.
// They have the fields with these names, or all fields when there are no names. total is the number
// of all runs when these are only a part of them, else 0. E_USAGE: a run has no such field.
func NewRunRows(rows iter.Seq[*Run], fields []string, total int) (*RunRows, error) {
	chosen := rowFields()
	if len(fields) > 0 {
		chosen = make([]rowField, 0, len(fields))
	}
	for i, name := range fields {
		at := slices.IndexFunc(rowFields(), func(f rowField) bool { return f.name == name })
		switch {
		case at < 0:
			return nil, agency.Errorf(agency.CodeUsage, "fields: a run has no field %q", name).WithHint("its fields: agency ls --json")
		case !slices.Contains(fields[:i], name): // an object has each key once
			chosen = append(chosen, rowFields()[at])
		}
	}
	return &RunRows{chosen, rows, total}, nil
}

// The text before and after the runs of a successful answer.
const (
	rowsBegin = `{"ok":true,"schema_version":1,"data":{"runs":[`
	rowsTotal = `,"total":`
	rowsTrace = `},"trace":`
	rowsEnd   = "}}\n"
)

// rowsPiece is how many bytes of rows are written at once.
const rowsPiece = 32 << 10

// WriteTo writes the whole envelope with the response on one line, as EncodeLine does, in pieces.
// The steps of the request follow the response, if there are any.
func (l *RunRows) WriteTo(w io.Writer, spans []agency.Span) error {
	text := append(make([]byte, 0, rowsPiece+4<<10), rowsBegin...)
	first := true
	for r := range l.rows {
		if !first {
			text = append(text, ',')
		}
		first = false
		var err error
		if text, err = l.appendRow(text, r); err != nil {
			return err
		}
		if len(text) >= rowsPiece {
			if _, err := w.Write(text); err != nil {
				return err
			}
			text = text[:0]
		}
	}
	text = append(text, ']')
	if l.total > 0 {
		text = strconv.AppendInt(append(text, rowsTotal...), int64(l.total), 10)
	}
	if len(spans) > 0 {
		var steps bytes.Buffer
		if err := EncodeLine(&steps, spans); err != nil {
			return err
		}
		text = append(append(append(text, rowsTrace...), bytes.TrimSpace(steps.Bytes())...), "}\n"...)
	} else {
		text = append(text, rowsEnd...)
	}
	_, err := w.Write(text)
	return err
}

func (l *RunRows) appendRow(text []byte, r *Run) ([]byte, error) {
	row, err := reflect.ValueOf(r).Elem(), error(nil)
	for i := range l.fields {
		f := &l.fields[i]
		sign := byte(',')
		if i == 0 {
			sign = '{'
		}
		text = append(append(text, sign), f.key...)
		if text, err = f.append(text, row.Field(f.index)); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// rowField is a field of a run.
type rowField struct {
	name   string
	key    string // in JSON, with the colon
	index  int
	append func(text []byte, v reflect.Value) ([]byte, error)
	read   func(text string, v reflect.Value) (rest string, ok bool)
}

// rowFields returns the fields of a run.
var rowFields = sync.OnceValue(func() []rowField {
	fields := []rowField{}
	for f := range reflect.TypeFor[Run]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, rowField{name, strconv.Quote(name) + ":", f.Index[0], appenderOf(f.Type), readerOf(f.Type)})
	}
	return fields
})

// appenderOf returns the function that encodes a value of a type. For the types that most fields
// have it is much faster than encoding/json, and does the same.
func appenderOf(t reflect.Type) func([]byte, reflect.Value) ([]byte, error) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return appendTime
	case t.Kind() == reflect.String:
		return func(text []byte, v reflect.Value) ([]byte, error) { return appendText(text, v.String()) }
	case t.Kind() == reflect.Bool:
		return func(text []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(text, v.Bool()), nil }
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return func(text []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(text, v.Int(), 10), nil }
	case t.Kind() == reflect.Pointer:
		of := appenderOf(t.Elem())
		return func(text []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return append(text, "null"...), nil
			}
			return of(text, v.Elem())
		}
	default:
		return func(text []byte, v reflect.Value) ([]byte, error) { return appendAny(text, v.Addr().Interface()) }
	}
}

func appendAny(text []byte, v any) ([]byte, error) {
	var encoded bytes.Buffer
	if err := EncodeLine(&encoded, v); err != nil {
		return nil, err
	}
	return append(text, bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))...), nil
}

func appendText(text []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendAny(text, s)
		}
	}
	return append(append(append(text, '"'), s...), '"'), nil
}

func appendTime(text []byte, v reflect.Value) ([]byte, error) {
	at, _ := reflect.TypeAssert[*time.Time](v.Addr())
	if y := at.Year(); y < 0 || y > 9999 {
		return appendAny(text, at) // an error
	}
	return append(at.AppendFormat(append(text, '"'), time.RFC3339Nano), '"'), nil
}
