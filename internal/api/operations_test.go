package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
)

// structs returns all struct types in a type that is sent, in the order of their first use.
func structs(t reflect.Type) []reflect.Type {
	found, seen := []reflect.Type{}, map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || t == reflect.TypeFor[time.Time]() {
			return
		}
		seen[t] = true
		found = append(found, t)
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("json") != "-" {
				walk(f.Type)
			}
		}
	}
	walk(t)
	return found
}

// An answer contains every list, even an empty one, so that readers need not distinguish missing
// from empty. In a request, which users write, an empty list may be omitted.
func TestShapes(t *testing.T) {
	t.Parallel()
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	whole := []reflect.Kind{reflect.Slice, reflect.Pointer, reflect.Struct}
	describable := append([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64, reflect.Map}, whole...)
	check := func(root reflect.Type, response bool) {
		for _, typ := range structs(root) {
			names := map[string]bool{}
			for _, f := range reflect.VisibleFields(typ) {
				name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "-" {
					continue
				}
				if !snake.MatchString(name) || names[name] {
					t.Errorf("%s.%s: the key is %q", typ, f.Name, name)
				}
				names[name] = true
				if !slices.Contains(describable, f.Type.Kind()) {
					t.Errorf("%s.%s is a %s, which docs/json.md cannot describe", typ, f.Name, f.Type)
				}
				if response && options != "" && slices.Contains(whole, f.Type.Kind()) {
					t.Errorf("%s.%s is left out of answers when it is empty", typ, f.Name)
				}
			}
		}
	}
	for _, op := range api.Operations() {
		check(op.Request, false)
		check(op.Response, true)
	}
	check(reflect.TypeFor[agency.Event](), true)
}

// The table holds every operation that the package declares, and each entry is complete.
func TestOperationsAreComplete(t *testing.T) {
	t.Parallel()
	names, tools := map[string]bool{}, map[string]bool{}
	for _, op := range api.Operations() {
		if names[op.Name] || !regexp.MustCompile(`^[a-z]+(\.[a-z]+)?$`).MatchString(op.Name) {
			t.Errorf("the operation %q is listed twice, or has a bad name", op.Name)
		}
		names[op.Name] = true
		if !regexp.MustCompile(`^[A-Z][^.]*( agency\.toml [^.]*)?( trust\.show [^.]*)?\.$`).MatchString(op.Help) {
			t.Errorf("the help of %s is not one sentence: %q", op.Name, op.Help)
		}
		for i, code := range op.Errors {
			if !code.Known() || slices.Contains(api.CommonErrors(), code) || slices.Contains(op.Errors[:i], code) {
				t.Errorf("%s lists %s, which is unknown, common to all operations, or listed twice", op.Name, code)
			}
		}
		if op.Tool == nil {
			continue
		}
		if tools[op.Tool.Name] || op.Tool.Help == "" {
			t.Errorf("the tool %q of %s is listed twice, or has no help", op.Tool.Name, op.Name)
		}
		tools[op.Tool.Name] = true
	}
	if declared := declaredOperations(t); declared != len(names) {
		t.Errorf("%d operations are declared and %d listed", declared, len(names))
	}
	if d := api.CreateRun.Describe(); d.Path() != "/v1/run.create" {
		t.Errorf("a run is created at %s", d.Path())
	}
}

// declaredOperations counts the operations in the source.
func declaredOperations(t *testing.T) int {
	t.Helper()
	declared := 0
	files, err := filepath.Glob("operations*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if generic, ok := lit.Type.(*ast.IndexListExpr); ok && generic.X.(*ast.Ident).Name == "Operation" {
					declared++
				}
			}
			return true
		})
	}
	return declared
}

// A name that no operation has is an error with the nearest one.
func TestFind(t *testing.T) {
	t.Parallel()
	if op, err := api.Find("run.show"); err != nil || op.Name != "run.show" {
		t.Errorf("got %+v, %v", op, err)
	}
	_, err := api.Find("run.lst")
	if e := agency.AsError(err); e == nil || e.Code != agency.CodeUsage || e.Hint != "did you mean: agency api run.list" {
		t.Errorf("got %+v", e)
	}
}

// A new view of a run keeps everything that a list shows.
func TestNewRun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	r := agency.Run{
		ID: "r_1", Handle: "1122-a-b1b2", Tags: []string{}, Repo: agency.Repo{Root: "/r"}, Commit: "c", Worktree: "/w", Dir: "/d",
		Runner: agency.Runner{Kind: agency.Custom, Name: "aider"}, CreatedAt: now,
		Attempt: agency.Attempt{Number: 2, State: agency.Failed, ErrorCode: agency.CodeTimeLimit, EndedAt: &now},
	}
	v := api.NewRun(&r, agency.Status{Label: agency.LabelFailed, Summary: "s", Since: now, Problem: "p"})
	if v.Ref() != r.Handle || v.Session != "agency_r_1" || v.Status != agency.LabelFailed || v.Attempt != 2 || v.Runner != "aider" ||
		v.RunnerKind != agency.Custom || v.Tags == nil || v.ErrorCode != agency.CodeTimeLimit || v.EndedAt == nil || v.BaseCommit != "c" {
		t.Errorf("got %+v", v)
	}
	v.Name = "fix"
	if v.Ref() != "fix" {
		t.Errorf("a named run is called %s", v.Ref())
	}
}
