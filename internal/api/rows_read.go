package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
)

// readRows reads an answer that a RunRows wrote, and the steps of the request, much faster than
// encoding/json. It reports false for anything else, which may be an answer too.
func readRows(body string, into *ListRunsResponse, spans *[]agency.Span) bool {
	text, ok := strings.CutPrefix(body, rowsBegin)
	if !ok {
		return false
	}
	runs, order := []Run{}, []*rowField{}
	for n := 0; !strings.HasPrefix(text, "]"); n++ {
		if n > 0 {
			if text, ok = strings.CutPrefix(text, ","); !ok {
				return false
			}
		}
		if n == 1 { // by the length of the first row
			runs = slices.Grow(runs, len(text)/(len(body)-len(rowsBegin)-len(text))*5/4+16)
		}
		runs = append(runs, Run{})
		if text, ok = readRow(text, &runs[n], &order); !ok {
			return false
		}
	}
	text = text[1:]
	if rest, part := strings.CutPrefix(text, rowsTotal); part {
		if text, ok = readInt(rest, reflect.ValueOf(&into.Total).Elem()); !ok {
			return false
		}
	}
	into.Runs = runs
	if steps, traced := strings.CutPrefix(text, rowsTrace); traced {
		steps, ok = strings.CutSuffix(steps, "}\n")
		return ok && json.Unmarshal([]byte(steps), spans) == nil
	}
	return text == rowsEnd
}

// readRow reads a run. order holds the fields of the rows before, which this row has too.
func readRow(text string, r *Run, order *[]*rowField) (rest string, ok bool) {
	row := reflect.ValueOf(r).Elem()
	for i := 0; ; i++ {
		switch {
		case i == 0 && strings.HasPrefix(text, "{"), i > 0 && strings.HasPrefix(text, ","):
		case i > 0 && i == len(*order) && strings.HasPrefix(text, "}"):
			return text[1:], true
		default:
			return "", false
		}
		text = text[1:]
		if i == len(*order) {
			at := slices.IndexFunc(rowFields(), func(f rowField) bool { return strings.HasPrefix(text, f.key) })
			if at < 0 || slices.Contains(*order, &rowFields()[at]) {
				return "", false
			}
			*order = append(*order, &rowFields()[at])
		}
		f := (*order)[i]
		if text, ok = strings.CutPrefix(text, f.key); !ok {
			return "", false
		}
		if text, ok = f.read(text, row.Field(f.index)); !ok {
			return "", false
		}
	}
}

// readerOf returns the function that decodes a value of a type from the beginning of a text.
func readerOf(t reflect.Type) func(string, reflect.Value) (string, bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return readTime
	case t.Kind() == reflect.String:
		return readText
	case t.Kind() == reflect.Bool:
		return readBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return readInt
	case t.Kind() == reflect.Pointer:
		of := readerOf(t.Elem())
		return func(text string, v reflect.Value) (string, bool) {
			if rest, null := strings.CutPrefix(text, "null"); null {
				return rest, true
			}
			v.Set(reflect.New(t.Elem()))
			return of(text, v.Elem())
		}
	default:
		return readAny
	}
}

func readText(text string, v reflect.Value) (string, bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			v.SetString(text[1:i])
			return text[i+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return readAny(text, v)
		}
	}
	return "", false
}

func readTime(text string, v reflect.Value) (string, bool) {
	end := strings.IndexByte(text[min(1, len(text)):], '"') + 1
	if end == 0 || text[0] != '"' {
		return "", false
	}
	at, _ := reflect.TypeAssert[*time.Time](v.Addr())
	return text[end+1:], at.UnmarshalText([]byte(text[1:end])) == nil
}

func readBool(text string, v reflect.Value) (string, bool) {
	if rest, is := strings.CutPrefix(text, "true"); is {
		v.SetBool(true)
		return rest, true
	}
	return strings.CutPrefix(text, "false")
}

func readInt(text string, v reflect.Value) (string, bool) {
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '-') {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	v.SetInt(n)
	return text[end:], err == nil && !v.OverflowInt(n) && (end == 1 || text[0] != '0')
}

// readAny reads a value of any type with encoding/json.
func readAny(text string, v reflect.Value) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(text[:valueEnd(text)]))
	dec.DisallowUnknownFields()
	if dec.Decode(v.Addr().Interface()) != nil {
		return "", false
	}
	return text[dec.InputOffset():], true
}

// valueEnd returns the end of the value at the beginning of a text, if the text is JSON.
func valueEnd(text string) int {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return i
		case c == '}', c == ']':
			depth--
		}
	}
	return len(text)
}
