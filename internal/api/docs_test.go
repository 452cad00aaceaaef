package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
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
	made := operationsText(comments(t))
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

// The example of a spec file is one.
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

// comments are the comments of all structs of the vocabulary and the API: those of fields under "Type.Field".
func comments(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.go", "../../*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							found[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()+field.Comment.Text()), " ")
						}
					}
				}
				return true
			})
		}
	}
	return found
}

func operationsText(comments map[string]string) string {
	var b strings.Builder
	types, seen := []reflect.Type{}, map[reflect.Type]bool{}
	part := func(title string, root reflect.Type) {
		all := structs(root)
		if root.NumField() == 0 {
			fmt.Fprintf(&b, "\n%s: `{}`\n", title)
		} else {
			fmt.Fprintf(&b, "\n%s:\n\n", title)
			fields(&b, root, comments)
		}
		for _, t := range all[1:] {
			if !seen[t] {
				seen[t], types = true, append(types, t)
			}
		}
	}
	for _, op := range api.Operations() {
		fmt.Fprintf(&b, "\n### %s\n\n`POST /v1/%s`: %s.\n", op.Name, op.Name, op.Help)
		part("Request", op.Request)
		part("Response", op.Response)
	}
	for _, t := range types {
		fmt.Fprintf(&b, "\n### %s\n\n", t.Name())
		fields(&b, t, comments)
	}
	return b.String() + "\n"
}

func fields(b *strings.Builder, t reflect.Type, comments map[string]string) {
	b.WriteString("| key | type | |\n|---|---|---|\n")
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		typ := typeText(f.Type)
		if options != "" {
			typ += ", optional"
		}
		comment := strings.ReplaceAll(comments[t.Name()+"."+f.Name], "|", `\|`)
		if rest, ok := strings.CutPrefix(comment, f.Name+" "); ok {
			comment = "`" + name + "` " + rest
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typ, comment)
	}
}

// typeText names a type as people who write JSON know it.
func typeText(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeText(t.Elem()) + " or null"
	case reflect.Slice:
		return "list of " + typeText(t.Elem())
	case reflect.Map:
		return "object of " + typeText(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
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
