package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"agency/internal/plain"
)

// Decode reads exactly one JSON document into v, which points to a struct. It is stricter than
// encoding/json: unknown keys, keys in the wrong case, repeated keys and anything after the
// document are errors. The error is one sentence that begins with LINE:COLUMN and names the nearest
// known key.
func Decode(data []byte, v any) error {
	w := walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	if err := w.value(reflect.TypeOf(v).Elem(), ""); err != nil {
		return w.at(err)
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return w.at(errors.New("there is more text after the end of the document"))
	}
	if err := json.Unmarshal(data, v); err != nil {
		if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			w.offset = typ.Offset
			return w.at(fmt.Errorf("%s must be %s, not %s", orDocument(typ.Field), kindName(typ.Type), typ.Value))
		}
		return w.at(err)
	}
	return nil
}

type walker struct {
	data   []byte
	dec    *json.Decoder
	depth  int
	offset int64 // where the error is; 0 means the decoder's position
}

// at adds the position to an error.
func (w *walker) at(err error) error {
	var syntax *json.SyntaxError
	offset := w.dec.InputOffset()
	if w.offset > 0 {
		offset = w.offset
	}
	switch {
	case errors.As(err, &syntax):
		offset, err = syntax.Offset, errors.New(strings.TrimPrefix(syntax.Error(), "json: "))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = int64(len(w.data)), errors.New("the document ends too early")
	}
	before := w.data[:min(offset, int64(len(w.data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Errorf("%d:%d: %w", line, max(column, 1), err)
}

// depthLimit limits the depth of a document, which could be made to exhaust the stack.
const depthLimit = 64

// value checks one JSON value against the Go type that it will be decoded into; a nil type accepts
// anything.
func (w *walker) value(t reflect.Type, path string) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	if w.depth++; w.depth > depthLimit {
		return errors.New("nested too deeply")
	}
	defer func() { w.depth-- }()
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('{'):
		return w.object(t, path)
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for w.dec.More() {
			if err := w.value(elem, path+"[]"); err != nil {
				return err
			}
		}
		_, err = w.dec.Token()
		return err
	}
	return nil
}

func (w *walker) object(t reflect.Type, path string) error {
	fields, known := fieldsOf(t)
	seen := map[string]bool{}
	for w.dec.More() {
		before := w.dec.InputOffset()
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		full := strings.TrimPrefix(path+"."+key, ".")
		if seen[key] {
			w.offset = w.quoteAfter(before)
			return fmt.Errorf("key %q is there twice", full)
		}
		seen[key] = true
		next, ok := fields[key]
		if !ok && fields != nil {
			w.offset = w.quoteAfter(before)
			if near := plain.Nearest(key, known); near != "" {
				return fmt.Errorf("unknown key %q; did you mean %q?", full, near)
			}
			return fmt.Errorf("unknown key %q; known are %s", full, strings.Join(known, ", "))
		}
		if err := w.value(next, full); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// quoteAfter returns the offset of the first quote after offset, where a key begins.
func (w *walker) quoteAfter(offset int64) int64 {
	return offset + int64(bytes.IndexByte(w.data[offset:], '"')) + 1
}

// fieldsOf maps the JSON keys of a struct to their types, and lists the keys. Both are nil for any
// other type.
func fieldsOf(t reflect.Type) (map[string]reflect.Type, []string) {
	if t == nil || t.Kind() != reflect.Struct || t.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil, nil
	}
	fields, known := map[string]reflect.Type{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
		known = append(known, name)
	}
	return fields, known
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a whole number"
	}
}

func orDocument(field string) string {
	if field == "" {
		return "the document"
	}
	return field
}
