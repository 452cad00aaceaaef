package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/document"
	"agency/internal/plain"
)

// form is the form of a plan; a valid one needs four levels.
var form = document.Form{
	Name: "a plan", Depth: 20, Docs: "docs/plan.md shows the form of a plan",
	Shared: "write what several agents have in common once under defaults:", Block: "prompt: |",
}

// fields are the keys of one table, read by name and type. A wrong value is added to the problems
// and leaves the target unchanged.
type fields struct {
	*document.Problems
	values map[string]*document.Value
}

// fieldsOf returns the fields of a table. elsewhere returns, for a key that belongs to another
// table, where it belongs.
func fieldsOf(found *document.Problems, v *document.Value, what string, known []string, elsewhere func(key string) string) fields {
	f := fields{found, map[string]*document.Value{}}
	if v.Kind != document.Table {
		found.Add(v.At, form.Docs, "%s must be a table of keys, not %s", what, v.Words())
		return f
	}
	asIs := func(key string) string { return key }
	for _, field := range found.Fields(v, known, asIs, func(field *document.Field) {
		hint := elsewhere(field.Key)
		if hint == "" {
			hint = document.DidYouMean(field.Key, known, asIs)
		}
		if hint == "" {
			hint = "the keys of " + what + " are " + strings.Join(known, ", ")
		}
		found.Add(field.At, hint, "%s has no key %s", what, document.Quoted(field.Key))
	}) {
		f.values[field.Key] = field.Value
	}
	return f
}

// read reads the value of a key, if the key is present, and reports whether it read a valid one.
func read[T any](f fields, key string, to *T, as func(*document.Value) (T, error)) bool {
	v := f.values[key]
	if v == nil {
		return false
	}
	value, err := as(v)
	if err != nil {
		f.Refuse(v, key, err)
		return false
	}
	*to = value
	return true
}

// text reads a text in the spelling of the document.
func text(v *document.Value) (string, error) {
	s, err := v.AsString()
	if err == nil {
		err = filled(s)
	}
	return s, err
}

func filled(s string) error {
	if s == "" {
		return document.Hinted(errors.New("is empty"), "leave the key out, or give it a value")
	}
	return nil
}

func texts(v *document.Value) ([]string, error) { return v.AsStrings(filled) }

// resources reads a table of limits.
func resources(v *document.Value) (agency.Resources, error) {
	r := agency.Resources{}
	if v.Kind != document.Table {
		return r, document.Hinted(fmt.Errorf("must be a table of limits, not %s", v.Words()), "resources: {memory: 4g, cpus: 2}")
	}
	for _, field := range v.Fields {
		name := agency.LimitName(field.Key)
		if !slices.Contains(agency.LimitNames(), name) {
			return r, document.Hinted(fmt.Errorf("has an unknown limit %s", document.Quoted(field.Key)), "resources: {memory: 4g, pids: 512, cpus: 2, disk: 10g, tmp: 1g, open_files: 1024}")
		}
		if err := r.Put(name, field.Value.Text); err != nil {
			return r, fmt.Errorf("has a limit %s that %w", field.Key, err)
		}
	}
	return r, nil
}

// oneOrMore reads a list of texts, or one text in its place.
func oneOrMore(v *document.Value) ([]string, error) {
	if one, err := text(v); err == nil {
		return []string{one}, nil
	}
	return texts(v)
}

func boolean(v *document.Value) (*bool, error) {
	value, err := v.AsBool()
	return &value, err
}

func number(v *document.Value) (int, error) {
	n, err := v.AsInt()
	return int(n), err
}

// counted reads a number from 1 on; 0 would otherwise count as not given.
func counted(v *document.Value) (int, error) {
	n, err := number(v)
	if err == nil && n == 0 {
		err = document.Hinted(errors.New("is 0"), "leave the key out, or give a number from 1")
	}
	return n, err
}

func limit(v *document.Value) (time.Duration, error) {
	d, err := v.AsDuration()
	if err == nil && d <= 0 {
		err = document.Hinted(fmt.Errorf("is %s", plain.Clip(v.Text)), "leave the key out for no limit")
	}
	return d, err
}
