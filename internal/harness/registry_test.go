package harness_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
)

var update = flag.Bool("update", false, "write what docs say of the registry")

// docs/agents.md agrees with the registry.
func TestDocs(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/agents.md", "-run Docs -update -->\n", "<!-- end of agents -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the agents", path)
	}
	want := before + begin + agentsTable() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Errorf("%s is stale: go test ./internal/harness -run Docs -update", path)
	}
}

func agentsTable() string {
	var b strings.Builder
	b.WriteString("| runner | agent | program | npm package, tested version | agency learns from | mark of errors in its terminal | `agency answer` works |\n|---|---|---|---|---|---|---|\n")
	for _, a := range harness.Agents() {
		answered := "no"
		if a.Answer != nil {
			answered = "yes"
		}
		marks := "none"
		if len(a.ErrorMarks) > 0 {
			marks = "`" + strings.TrimSpace(strings.Join(a.ErrorMarks, " ")) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | `%s` %s | %s | %s | %s |\n", a.Kind, a.Name, a.Program, a.Package, a.Version, strings.Join(readers(a), ", "), marks, answered)
	}
	return b.String()
}

func readers(a agent.Agent) []string {
	var names []string
	for _, reader := range []struct {
		name string
		has  bool
	}{
		{"hooks", a.Hook != nil},
		{"its stream without a terminal", a.Stream != nil},
		{"its files", a.ReadFile != nil},
		{"the title", a.Title != nil},
		{"its screen", a.Screen != nil},
	} {
		if reader.has {
			names = append(names, reader.name)
		}
	}
	return names
}

// The registry is the only list of agents: no line of the product or of its docs names most of
// them.
func TestAgentsAreListedOnce(t *testing.T) {
	t.Parallel()
	files, err := exec.Command("git", "-C", "../..", "ls-files", "--", "*.go", "*.md", "*.toml", "*.json", "*.sh", "Makefile", ":!*_test.go", ":!**/testdata/**", ":!CHANGELOG.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(files)) {
		data, err := os.ReadFile("../../" + name)
		if os.IsNotExist(err) {
			continue // it is removed, but not yet in a commit
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			named := 0
			for _, a := range harness.Agents() {
				if strings.Contains(line, string(a.Kind)) || strings.Contains(line, a.Name) {
					named++
				}
			}
			if named > len(harness.Agents())/2 {
				t.Errorf("%s:%d lists agents: %s", name, i+1, line)
			}
		}
	}
}

// A test reads the registry too: outside of an agent's own folder no file contains three kinds of
// agents as texts.
func TestTestsListNoAgents(t *testing.T) {
	t.Parallel()
	files, err := exec.Command("git", "-C", "../..", "ls-files", "--", "*.go", ":!internal/harness").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(files)) {
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.SkipObjectResolution)
		if os.IsNotExist(err) {
			continue // it is removed, but not yet in a commit
		}
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			for word := range strings.FieldsFuncSeq(literal.Value, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }) {
				named[word] = true
			}
			return true
		})
		agents := slices.DeleteFunc(harness.Agents(), func(a agent.Agent) bool { return !named[string(a.Kind)] })
		if len(agents) > 2 {
			t.Errorf("%s names %d agents: read harness.Agents()", name, len(agents))
		}
	}
}

// Each agent is complete: it has a name, a way to install it and a tested version.
func TestRegistry(t *testing.T) {
	t.Parallel()
	seen := map[agency.RunnerKind]bool{}
	for _, a := range harness.Agents() {
		if a.Kind == "" || a.Name == "" || a.Program == "" || a.Version == "" || a.Command == nil || seen[a.Kind] {
			t.Errorf("%s: got %+v", a.Kind, a)
		}
		seen[a.Kind] = true
		if (a.Answer == nil) != (a.Dialog == nil) || a.Answer != nil && a.Screen == nil {
			t.Errorf("%s: an answer needs a reader of dialogs and a screen", a.Kind)
		}
		facts, err := os.ReadFile(a.Program + "/facts_test.go")
		if err != nil || !strings.Contains(string(facts), fmt.Sprintf("harnesstest.Facts{\n\t\tKind: %q", a.Kind)) {
			t.Errorf("%s has no facts_test.go in its folder %s: %v", a.Kind, a.Program, err)
		}
	}
}
