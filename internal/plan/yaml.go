package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"agency"
)

// depthLimit is how deep a plan may be nested; a right one needs four levels.
const depthLimit = 20

// problem is one thing that is wrong with a document, and where.
type problem struct {
	line, column int // from 1; 0 is nowhere
	text, hint   string
}

// problems are everything that is wrong with a document.
type problems struct {
	name string // of the document
	list []problem
}

func (p *problems) add(at *yaml.Node, hint, format string, args ...any) {
	p.list = append(p.list, problem{at.Line, at.Column, fmt.Sprintf(format, args...), hint})
}

// err is the error of the first problem, with all of them in its detail "problems"; nil when there is none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	const most = 100 // to tell
	all := []string{}
	for _, one := range p.list[:min(len(p.list), most)] {
		all = append(all, withHint(place(p.name, one.line, one.column)+": "+one.text, one.hint))
	}
	first := p.list[0]
	message := among(place(p.name, first.line, first.column)+": "+first.text, all, len(p.list))
	e := agency.Errorf(agency.CodePlanInvalid, "%s", message).WithDetail("problems", all)
	e.Hint = first.hint
	return e
}

// among is the message of the first of several problems, with lines for some of the others. lines has the first, too.
func among(first string, lines []string, total int) string {
	if total == 1 {
		return first
	}
	return fmt.Sprintf("%s\n%d more:\n  %s", first, total-1, strings.Join(lines[1:min(len(lines), 6)], "\n  "))
}

func withHint(line, hint string) string {
	if hint == "" {
		return line
	}
	return line + " (" + hint + ")"
}

func place(name string, line, column int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, line, column)
}

// parse reads the one document of a plan, as a tree whose text is what was written: 001 stays 001. The tree holds no aliases.
func (p *problems) parse(data []byte) *yaml.Node {
	nothing := &yaml.Node{}
	if at, bad := unreadable(data); bad {
		p.add(&yaml.Node{Line: 1 + bytes.Count(data[:at], []byte{'\n'}), Column: at - bytes.LastIndexByte(data[:at], '\n')},
			"a plan is text in UTF-8", "there is a byte that is no text: 0x%02X", data[at])
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(depthLimit))))
	if err != nil {
		p.add(nothing, "", "%v", err)
		return nil
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		p.add(nothing, "it needs agents: [{id: one, prompt: \"fix the login test\"}]", "the plan is empty")
		return nil
	} else if err != nil {
		p.syntax(err, data)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		p.add(&second, "take out the --- or ... and what follows it", "a second document begins here, and a plan is one")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err, data)
	}
	if len(document.Content) != 1 {
		p.add(nothing, "", "the plan is empty")
		return nil
	}
	p.refuseAnchors(document.Content[0])
	if len(p.list) > 0 {
		return nil
	}
	return document.Content[0]
}

// unreadable finds the first byte that is no text.
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

// syntax tells what is no YAML.
func (p *problems) syntax(err error, data []byte) {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		p.add(&yaml.Node{}, "", "%s", printable(err.Error()))
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
		hint = "put a text with a colon into quotes, or write it as a block: prompt: |"
	case strings.Contains(text, "max depth"):
		text, hint = fmt.Sprintf("it is nested deeper than %d levels", depthLimit), "docs/plan.md shows the form of a plan"
	case strings.Contains(text, "unknown anchor"):
		hint = noAnchors
	}
	p.add(&yaml.Node{Line: load.Mark.Line, Column: load.Mark.Column}, hint, "%s", printable(text))
}

// indentedByTab says that there is a tab before the first word of a line, which counts from 1.
func indentedByTab(data []byte, line int) bool {
	for ; line > 1; line-- {
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	word := bytes.IndexFunc(data, func(r rune) bool { return r != ' ' && r != '\t' })
	return word > 0 && bytes.IndexByte(data[:word], '\t') >= 0
}

const noAnchors = "what several agents have in common stands once under defaults:; a text that begins with & or * needs quotes"

// refuseAnchors refuses what would make one part of a document stand for another, and the tags of YAML. The depth is bounded by
// the parser.
func (p *problems) refuseAnchors(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.add(n, noAnchors, "anchors and aliases are no part of a plan")
		return
	case n.Style&yaml.TaggedStyle != 0:
		p.add(n, "leave out the tag; a text that begins with ! needs quotes", "the tag %s is no part of a plan", quoted(n.Tag))
		return
	}
	for _, child := range n.Content {
		p.refuseAnchors(child)
	}
}
