package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Form describes a kind of YAML document, for messages.
type Form struct {
	Name  string // such as "a plan"
	Depth int    // maximum depth of nesting
	// Ways out: where the form is documented, where to write what several parts share, and how to
	// write a text with a colon.
	Docs, Shared, Block string
}

// YAML reads a text that holds one YAML document, without anchors, aliases and tags. The root is
// nil for an empty document, and for one with faults.
func YAML(data []byte, form Form) (root *Value, faults []Problem) {
	y := yamlReader{form: form}
	if n := y.parse(data); n != nil {
		root = y.value(n)
	}
	if len(y.faults) > 0 {
		return nil, y.faults
	}
	return root, nil
}

type yamlReader struct {
	form   Form
	faults []Problem
}

func (y *yamlReader) add(at Position, hint, format string, args ...any) {
	y.faults = append(y.faults, Problem{At: at, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func placeOf(n *yaml.Node) Position { return Position{n.Line, n.Column} }

func (y *yamlReader) parse(data []byte) *yaml.Node {
	if at, bad := unreadable(data); bad {
		y.add(positionAt(data, at), y.form.Name+" is text in UTF-8", "there is a byte that is not text: 0x%02X", data[at])
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(y.form.Depth))))
	if err != nil {
		y.add(Position{}, "", "%v", err)
		return nil
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		y.syntax(err, data)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		y.add(placeOf(&second), "take out the --- or ... and what follows it", "a second document begins here, and %s is one", y.form.Name)
	} else if !errors.Is(err, io.EOF) {
		y.syntax(err, data)
	}
	if len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

// unreadable finds the first byte that is not text.
func unreadable(data []byte) (at int, bad bool) {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r >= 0x7f && r < 0xa0 && r != 0x85 {
			return i, true
		}
		i += size
	}
	return 0, false
}

// syntax adds a syntax error.
func (y *yamlReader) syntax(err error, data []byte) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		y.add(Position{}, "", "%v", err)
		return
	}
	text, hint := load.Message, ""
	if load.ContextMsg != "" {
		text = fmt.Sprintf("%s, %s from %d:%d on", text, load.ContextMsg, load.ContextMark.Line, load.ContextMark.Column)
	}
	switch {
	case strings.Contains(text, "tab character"), indentedByTab(data, load.Mark.Line):
		text, hint = "a tab indents the line", "indent with spaces"
	case strings.Contains(text, "cannot start any token"):
		hint = "a text that begins with this character needs quotes"
	case strings.Contains(text, "mapping values are not allowed"):
		hint = "put a text with a colon into quotes, or write it as a block: " + y.form.Block
	case strings.Contains(text, "max depth"):
		text, hint = fmt.Sprintf("it is nested deeper than %d levels", y.form.Depth), y.form.Docs
	case strings.Contains(text, "unknown anchor"):
		hint = y.noAnchors()
	}
	y.add(Position{load.Mark.Line, load.Mark.Column}, hint, "%s", text)
}

// indentedByTab reports whether there is a tab before the first word of a line, which counts from
// 1.
func indentedByTab(data []byte, line int) bool {
	for ; line > 1; line-- {
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	word := bytes.IndexFunc(data, func(r rune) bool { return r != ' ' && r != '\t' })
	return word > 0 && bytes.IndexByte(data[:word], '\t') >= 0
}

func (y *yamlReader) noAnchors() string {
	return y.form.Shared + "; a text that begins with & or * needs quotes"
}

var yamlKinds = map[string]Kind{"!!null": Nothing, "!!int": Integer, "!!float": Float, "!!bool": Boolean, "!!timestamp": Time}

// value reads a node. The loader limits the depth, and since anchors are refused, every part
// appears once.
func (y *yamlReader) value(n *yaml.Node) *Value {
	v := &Value{At: placeOf(n), Text: n.Value}
	const quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		y.add(v.At, y.noAnchors(), "%s cannot have anchors or aliases", y.form.Name)
		return v
	case n.Style&yaml.TaggedStyle != 0:
		y.add(v.At, "leave out the tag; a text that begins with ! needs quotes", "%s cannot have the tag %s", y.form.Name, Quoted(n.Tag))
		return v
	case n.Kind == yaml.ScalarNode:
		v.Kind, v.Plain = Text, n.Style&quotes == 0
		if kind, ok := yamlKinds[n.Tag]; ok {
			v.Kind = kind
		}
	case n.Kind == yaml.SequenceNode:
		v.Kind, v.Plain = List, n.Style&yaml.FlowStyle != 0
		for _, item := range n.Content {
			v.Items = append(v.Items, y.value(item))
		}
	default:
		v.Kind, v.Plain = Table, n.Style&yaml.FlowStyle != 0
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := y.value(n.Content[i])
			if key.Kind == List || key.Kind == Table {
				y.add(key.At, "", "a key must be a word, not %s", key.Words())
			}
			v.Fields = append(v.Fields, &Field{key.Text, key.At, y.value(n.Content[i+1])})
		}
	}
	return v
}
