package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
)

var update = flag.Bool("update", false, "write the generated part of docs/json.md")

const (
	document = "../../docs/json.md"
	begin    = "<!-- generated: operations -->\n"
	end      = "<!-- end of generated: operations -->\n"
)

// The part of docs/json.md between the marks is made from the operations and their Go comments.
func TestDocsOperations(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks %q and %q", document, begin, end)
	}
	made := operationsText(readSource(t))
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+made+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, made); diff != "" {
		t.Errorf("docs/json.md is stale; go test ./internal/api -run Docs -update (-document +code):\n%s", diff)
	}
}

// The example of a spec file is a valid spec.
func TestDocsSpec(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "## The spec file")
	_, rest, _ = strings.Cut(rest, "```json\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is no example")
	}
	var spec agency.Spec
	if err := api.Decode([]byte(example), &spec); err != nil {
		t.Fatal(err)
	}
	if err := spec.Validate(); err != nil {
		t.Error(err)
	}
}

func operationsText(from *source) string {
	var b strings.Builder
	types, seen := []reflect.Type{}, map[reflect.Type]bool{}
	meet := func(t reflect.Type) {
		if !seen[t] {
			seen[t], types = true, append(types, t)
		}
	}
	part := func(title string, root reflect.Type) {
		if root.NumField() == 0 {
			fmt.Fprintf(&b, "\n%s: `{}`\n", title)
		} else {
			fmt.Fprintf(&b, "\n%s:\n\n", title)
			fields(&b, root, from)
		}
		for _, t := range structs(root)[1:] {
			meet(t)
		}
	}
	for _, op := range api.Operations() {
		b.WriteString(operationText(&op))
		part("Request", op.Request)
		part("Response", op.Response)
	}
	for _, s := range api.Streams() {
		b.WriteString(streamText(&s))
		if s.Query.NumField() > 0 {
			part("Query", s.Query)
		}
		if s.Item != nil {
			for _, t := range structs(s.Item) {
				meet(t)
			}
			fmt.Fprintf(&b, "\nIt sends: %s.\n", link(s.Item))
		}
	}
	for _, t := range types {
		fmt.Fprintf(&b, "\n### %s\n\n", t.Name())
		fields(&b, t, from)
	}
	for _, set := range from.sets {
		b.WriteString(setText(set, from))
	}
	return b.String() + "\n"
}

func operationText(op *api.Description) string {
	text := fmt.Sprintf("%s `POST /v1/%s` %s.", op.Help, op.Name, op.Kind)
	if op.Tool != nil {
		with := ""
		if op.Tool.Extra {
			with = ", of `agency mcp --tools all`"
		}
		text += fmt.Sprintf(" Tool: `%s`%s.", op.Tool.Name, with)
	}
	return fmt.Sprintf("\n### %s\n\n%s%s\n\n```json\n%s\n```\n", op.Name, wrapped(text), errorsText(op.Errors), op.Example)
}

// streamName returns the last part of the path of a stream.
func streamName(s *api.Stream) string { return strings.TrimPrefix(s.Path, "/v1/") }

func streamText(s *api.Stream) string {
	text := fmt.Sprintf("%s `GET %s`", s.Help, s.Path)
	switch {
	case s.Upgrade != "":
		text += fmt.Sprintf(" with `Upgrade: %s`. Lines in both directions: `%s`.", s.Upgrade, s.Media)
	case s.Media != "":
		text += fmt.Sprintf(" reads. Answer: `%s`.", s.Media)
	default:
		text += " reads."
	}
	return fmt.Sprintf("\n### %s\n\n%s%s\n", streamName(s), wrapped(text), errorsText(s.Errors))
}

func errorsText(codes []agency.Code) string {
	if len(codes) == 0 {
		return ""
	}
	return "\n\n" + wrapped(fmt.Sprintf("Errors: `%s`.", strings.ReplaceAll(list(codes), ", ", "`, `")))
}

// wrapped breaks prose into lines of at most 100 columns, and none between backticks.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range regexp.MustCompile("(?:[^ `]|`[^`]*`)+").FindAllString(text, -1) {
		switch {
		case i > 0 && column+1+len(word) > 100:
			b.WriteByte('\n')
			column = 0
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

func fields(b *strings.Builder, t reflect.Type, from *source) {
	b.WriteString("| key | type | |\n|---|---|---|\n")
	for _, f := range reflect.VisibleFields(t) {
		key, optional := jsonKey(&f)
		if key == "-" || f.Anonymous {
			continue
		}
		typ := from.typeText(f.Type)
		if optional {
			typ += ", optional"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, typ, cell(from.describe(t, &f)))
	}
}

// cell returns a comment as a table of the document has it: what it says of another document is a
// link.
func cell(comment string) string {
	linked := regexp.MustCompile(`docs/([a-z-]+\.md)`).ReplaceAllString(comment, "[$1]($1)")
	return strings.ReplaceAll(linked, "|", `\|`)
}

// setText describes a closed set: its values, in the order of the source, with what each means unless
// the comment of the set tells where that is.
func setText(t reflect.Type, from *source) string {
	var rows, names strings.Builder
	told := false
	for _, value := range from.values[t.String()] {
		meaning := from.comments[fmt.Sprint(t, "=", value)]
		if value == "" {
			value = `""`
		}
		told = told || meaning != ""
		fmt.Fprintf(&rows, "| `%s` | %s |\n", value, cell(meaning))
		fmt.Fprintf(&names, ", `%s`", value)
	}
	text := fmt.Sprintf("\n### %s\n\n%s\n\n", t.Name(), wrapped(cell(from.comments[t.String()])))
	if told {
		return text + "| value | |\n|---|---|\n" + rows.String()
	}
	return text + wrapped("One of "+strings.TrimPrefix(names.String(), ", ")+".") + "\n"
}

// link returns a link to the section of a type. An operation that has the same heading but for its
// dot comes first.
func link(t reflect.Type) string {
	anchor := strings.ToLower(t.Name())
	for _, op := range api.Operations() {
		if strings.ReplaceAll(op.Name, ".", "") == anchor {
			return fmt.Sprintf("[%s](#%s-1)", t.Name(), anchor)
		}
	}
	return fmt.Sprintf("[%s](#%s)", t.Name(), anchor)
}

// typeText names a type as users who write JSON know it.
func (s *source) typeText(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[agency.Code]():
		return "[code](#errors)"
	case s.values[t.String()] != nil:
		if !slices.Contains(s.sets, t) {
			s.sets = append(s.sets, t)
		}
		return link(t)
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t == reflect.TypeFor[[]byte]():
		return "text in base64"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.typeText(t.Elem()) + " or null"
	case reflect.Slice:
		return "list of " + s.typeText(t.Elem())
	case reflect.Map:
		return "object of " + s.typeText(t.Elem())
	case reflect.Struct:
		return link(t)
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Interface:
		return "any value"
	default:
		return "number"
	}
}
