package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// mostFact is how many characters of one text Facts shows.
const mostFact = 200

// Facts returns the data of an event as a text for users, in the order of the record and without empty values:
// "by user, request (kind permission, text make)".
func Facts(data json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return string(data)
	}
	return strings.Join(members(d), ", ")
}

// members reads the rest of an object after its first token, and returns its facts.
func members(d *json.Decoder) []string {
	var facts []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return facts
		}
		name, _ := key.(string)
		if fact := fact(strings.ReplaceAll(name, "_", " "), d); fact != "" {
			facts = append(facts, fact)
		}
	}
	_, _ = d.Token() // its end
	return facts
}

// fact reads the next value, and returns it with its name; "" for an empty value.
func fact(name string, d *json.Decoder) string {
	value, err := d.Token()
	if err != nil {
		return ""
	}
	switch v := value.(type) {
	case bool:
		if !v {
			return "not " + name
		}
		return name
	case json.Number:
		return name + " " + v.String()
	case string:
		return named(name, text(v))
	case json.Delim:
		if v == '[' {
			return named(name, strings.Join(elements(d), " | "))
		}
		if inner := strings.Join(members(d), ", "); inner != "" {
			return strings.TrimSpace(name + " (" + inner + ")")
		}
	}
	return ""
}

// elements reads the rest of a list after its first token, and returns its values.
func elements(d *json.Decoder) []string {
	var values []string
	for d.More() {
		if value := strings.TrimSpace(fact("", d)); value != "" {
			values = append(values, value)
		}
	}
	_, _ = d.Token() // its end
	return values
}

// named returns a value with its name, or "" for an empty value.
func named(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " " + value
}

// text returns a text on one line, cut off if it is long, and a time in the time zone of the user.
func text(s string) string {
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return at.Local().Format(time.DateTime)
	}
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > mostFact {
		return string(runes[:mostFact]) + "…"
	}
	return string(runes)
}
