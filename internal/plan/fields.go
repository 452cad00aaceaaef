package plan

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"agency"
)

// fields are the keys of one table, read by name and type. What is wrong is added to the problems and leaves the target as it is.
type fields struct {
	*problems
	values map[string]*yaml.Node
}

// fields takes a table apart. elsewhere says of a key that belongs to another table where that is.
func (p *problems) fields(n *yaml.Node, what string, known []string, elsewhere func(key string) string) fields {
	f := fields{p, map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		p.add(n, "docs/plan.md shows the form of a plan", "%s must be a table of keys, not %s", what, words(n))
		return f
	}
	isKnown := map[string]bool{}
	for _, key := range known {
		isKnown[key] = true
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.add(key, "", "a key of %s must be a word, not %s", what, words(key))
		case !isKnown[key.Value]:
			hint := elsewhere(key.Value)
			if near := agency.Nearest(key.Value, known); hint == "" && near != "" {
				hint = "did you mean " + near + "?"
			}
			if hint == "" {
				hint = "the keys of " + what + " are " + strings.Join(known, ", ")
			}
			p.add(key, hint, "%s has no key %s", what, quoted(key.Value))
		case f.values[key.Value] != nil:
			p.add(key, "keep one of the two", "the key %s stands twice, first in line %d", key.Value, f.values[key.Value].Line)
		default:
			f.values[key.Value] = value
		}
	}
	return f
}

// words names a value for people.
func words(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a table"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	default:
		return quoted(n.Value)
	}
}

// text reads one value as it is written.
func (f fields) text(key string, to *string) {
	if n := f.values[key]; n != nil {
		f.textOf(n, key, to)
	}
}

func (f fields) textOf(n *yaml.Node, what string, to *string) bool {
	switch {
	case n.Kind != yaml.ScalarNode:
		f.add(n, "a text that looks like a list or a table needs quotes", "%s must be text, not %s", what, words(n))
	case n.Tag == "!!null":
		f.add(n, "leave the key out, or give it a value", "%s has no value", what)
	case n.Value == "":
		f.add(n, "leave the key out, or give it a value", "%s is empty", what)
	default:
		*to = n.Value
		return true
	}
	return false
}

// texts reads a list of texts; an empty one is not nil.
func (f fields) texts(key string, to *[]string) {
	n := f.values[key]
	if n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			hint = "write " + key + ": [" + printable(n.Value) + "]"
		}
		f.add(n, hint, "%s must be a list, not %s", key, words(n))
		return
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		var text string
		if f.textOf(item, "an item of "+key, &text) {
			list = append(list, text)
		}
	}
	*to = list
}

func (f fields) boolean(key string, to **bool) {
	n := f.values[key]
	if n == nil {
		return
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		f.add(n, "", "%s must be true or false, not %s", key, words(n))
		return
	}
	value := strings.EqualFold(n.Value, "true")
	*to = &value
}

func (f fields) number(key string, to *int) {
	if n := f.values[key]; n != nil {
		f.numberOf(n, key, to)
	}
}

// counted is number for what starts at 1, where 0 would otherwise count as not given.
func (f fields) counted(key string, to *int) {
	f.number(key, to)
	if n := f.values[key]; n != nil && n.Kind == yaml.ScalarNode && *to == 0 && n.Tag == "!!int" {
		f.add(n, "leave the key out, or give a number from 1", "%s is 0", key)
	}
}

func (f fields) numberOf(n *yaml.Node, what string, to *int) {
	value, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 || err != nil {
		f.add(n, "for example: 3", "%s must be a whole number, not %s", what, words(n))
		return
	}
	*to = value
}

func (f fields) duration(key string, to *time.Duration) {
	n := f.values[key]
	if n == nil {
		return
	}
	const example = "a duration is such as 90s, 30m or 2h"
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		f.add(n, example, "%s must be a duration, not %s", key, words(n))
	case d <= 0:
		f.add(n, example+"; leave the key out for no limit", "%s is %s", key, printable(n.Value))
	default:
		*to = d
	}
}
