package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"agency"
	"agency/internal/api"
)

// source is what the Go source contains about the types that are sent: comments, and the values of
// closed sets.
type source struct {
	comments map[string]string // of types and fields, under "package.Type" and "package.Type.Field"; of values under "package.Type=value"
	values   map[string][]any  // the constants of a named string type, under "package.Type"
	sets     []reflect.Type    // the closed sets that typeText has named
}

// readSource reads the root package and this package.
func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{comments: map[string]string{}, values: map[string][]any{}}
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
			for _, decl := range f.Decls {
				if d, ok := decl.(*ast.GenDecl); ok {
					for _, spec := range d.Specs {
						s.add(f.Name.Name, d, spec)
					}
				}
			}
		}
	}
	// The basis of a status can be a source of evidence too, and the state of a check a verdict. The
	// coding agents are those of the registry, which grows.
	s.include("agency.DecidedBy", "agency.Source")
	s.include("agency.CheckState", "agency.Verdict")
	delete(s.values, "agency.RunnerKind")
	return s
}

// include adds the values of another closed set to one.
func (s *source) include(to, other string) {
	for _, value := range s.values[other] {
		s.values[to] = append(s.values[to], value)
		s.comments[fmt.Sprint(to, "=", value)] = s.comments[fmt.Sprint(other, "=", value)]
	}
}

func (s *source) add(pkg string, decl *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		named, ok := spec.Type.(*ast.Ident)
		if decl.Tok != token.CONST || !ok || len(spec.Values) != 1 {
			return
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			value, _ := strconv.Unquote(lit.Value)
			set := pkg + "." + named.Name
			s.values[set] = append(s.values[set], value)
			doc := spec.Doc
			if !decl.Lparen.IsValid() {
				doc = decl.Doc
			}
			s.comments[set+"="+value] = about(oneLine(doc.Text()+" "+spec.Comment.Text()), spec.Names[0].Name, value)
		}
	case *ast.TypeSpec:
		name := pkg + "." + spec.Name.Name
		s.comments[name] = oneLine(decl.Doc.Text())
		if str, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range str.Fields.List {
				for _, f := range field.Names {
					s.comments[name+"."+f.Name] = oneLine(field.Doc.Text() + " " + field.Comment.Text())
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// describe returns the description of a field: its jsonschema tag, or else its comment.
func (s *source) describe(t reflect.Type, f *reflect.StructField) string {
	if tag := f.Tag.Get("jsonschema"); tag != "" {
		return tag
	}
	for _, i := range f.Index[:len(f.Index)-1] { // a field of an embedded struct
		t = t.Field(i).Type
	}
	key, _ := jsonKey(f)
	return about(s.comments[t.String()+"."+f.Name], f.Name, key)
}

// about returns a comment that begins with a name in Go with the name in JSON in its place.
func about(comment, name, key string) string {
	if rest, ok := strings.CutPrefix(comment, name+" "); ok {
		return "`" + key + "` " + rest
	}
	return comment
}

// jsonKey returns the JSON key of a field, "-" for none, and whether it is optional.
func jsonKey(f *reflect.StructField) (key string, optional bool) {
	key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key, strings.HasPrefix(options, "omit")
}

// fixed returns the schemas of types that encode their JSON themselves.
func fixed() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {Type: "object"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[agency.Environ](): {Type: "array", Items: &jsonschema.Schema{
			Description: "NAME=value; an object with its bytes when it is not valid UTF-8",
			AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object", Required: []string{"base64"}, Properties: map[string]*jsonschema.Schema{
				"base64": {Type: "string", ContentEncoding: "base64"},
			}}},
		}},
	}
}

// schemaOf returns the schema of a struct; other structs in it are references to components. Strict
// is for requests: the daemon refuses unknown keys in them, while answers can get new ones.
func (s *source) schemaOf(t reflect.Type, strict bool) (*jsonschema.Schema, error) {
	known := fixed()
	for _, other := range structs(t)[1:] {
		known[other] = &jsonschema.Schema{Ref: "#/components/schemas/" + other.Name()}
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	if !strict {
		schema.AdditionalProperties = nil
	}
	schema.Description = s.comments[t.String()]
	schema.Required = nil
	for _, f := range reflect.VisibleFields(t) {
		key, optional := jsonKey(&f)
		property := schema.Properties[key]
		if property == nil {
			continue
		}
		if !optional {
			schema.Required = append(schema.Required, key)
		}
		property = s.tidy(property, f.Type)
		property.Description = s.describe(t, &f)
		if s.values[f.Type.String()] != nil && (optional || strings.Contains(property.Description, "empty")) {
			property = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: property.Ref}, {Enum: []any{""}}}, Description: property.Description}
		}
		schema.Properties[key] = property
	}
	return schema, nil
}

// tidy adapts the schema of a field to what docs/json.md promises: lists are never null. A closed
// set is a component too.
func (s *source) tidy(p *jsonschema.Schema, t reflect.Type) *jsonschema.Schema {
	if p.Ref != "" && p.Types != nil {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}}}
	}
	if t.Kind() == reflect.Slice && p.Items != nil {
		p.Type, p.Types = "array", nil
		p.Items = s.tidy(p.Items, t.Elem())
	}
	if s.values[t.String()] != nil {
		return &jsonschema.Schema{Ref: "#/components/schemas/" + t.Name()}
	}
	return p
}

// components returns the schemas of all structs in operations, and of the closed sets in them, by
// name.
func (s *source) components(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	answers, types := map[reflect.Type]bool{}, map[string]reflect.Type{}
	meet := func(root reflect.Type, answer bool) {
		for _, typ := range structs(root) {
			if other := types[typ.Name()]; other != nil && other != typ {
				t.Fatalf("%s and %s travel under the same name", other, typ)
			}
			types[typ.Name()] = typ
			answers[typ] = answers[typ] || answer
		}
	}
	for _, op := range api.Operations() {
		meet(op.Request, false)
		meet(op.Response, true)
	}
	for _, s := range api.Streams() {
		if s.Item != nil {
			meet(s.Item, true)
		}
	}
	meet(reflect.TypeFor[api.Problem](), true)
	made := map[string]*jsonschema.Schema{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		schema, err := s.schemaOf(types[name], !answers[types[name]])
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		made[name] = schema
		for _, f := range reflect.VisibleFields(types[name]) {
			typ := f.Type
			if typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if values := s.values[typ.String()]; values != nil {
				if types[typ.Name()] != nil {
					t.Fatalf("%s and %s travel under the same name", typ, types[typ.Name()])
				}
				values = slices.Clone(values)
				slices.SortFunc(values, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
				made[typ.Name()] = &jsonschema.Schema{Description: s.comments[typ.String()], Type: "string", Enum: values}
			}
		}
	}
	return made
}
