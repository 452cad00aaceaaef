package scaffold_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/contract"
	"agency/internal/scaffold"
)

func put(t *testing.T, root, rel, text string) {
	t.Helper()
	path := filepath.Join(root, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// initialise plans and applies, and returns the action of each path.
func initialise(t *testing.T, root string, want scaffold.ProjectFiles) map[string]scaffold.Action {
	t.Helper()
	changes, err := scaffold.PlanProject(root, want)
	if err != nil {
		t.Fatal(err)
	}
	if err := scaffold.ApplyProject(root, changes); err != nil {
		t.Fatal(err)
	}
	done := map[string]scaffold.Action{}
	for _, c := range changes {
		done[c.Path] = c.Action
	}
	return done
}

func TestProject(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	want := scaffold.ProjectFiles{Config: []byte("# mine\n"), Window: true, Standard: true}
	got := initialise(t, root, want)
	for path, action := range got {
		if action != scaffold.Created {
			t.Errorf("%s: got %s", path, action)
		}
	}
	files := tree(t, root)
	for _, rel := range []string{
		agency.ProjectFile, "CLAUDE.md", ".gitignore", "agent_runs/.template/meta.yaml", "agent_runs/.template/state.json",
		"specs/.gitkeep", "scout_outputs/archive/.gitkeep", "ai_docs/.gitkeep",
	} {
		if _, ok := files[rel]; !ok {
			t.Errorf("%s is missing", rel)
		}
	}
	// The example in it is a status that an agent may report.
	_, example, _ := strings.Cut(files["CLAUDE.md"], "```json\n")
	example, _, _ = strings.Cut(example, "```")
	if _, err := contract.Parse([]byte(example)); err != nil {
		t.Errorf("the example of CLAUDE.md: %v", err)
	}
	// The second time, and after an edit of the user's.
	for path, action := range initialise(t, root, want) {
		if action != scaffold.Exists {
			t.Errorf("again: %s: got %s", path, action)
		}
	}
	put(t, root, "agent_runs/.template/state.json", "{}")
	put(t, root, "CLAUDE.md", "my own")
	initialise(t, root, want)
	if got := tree(t, root)["agent_runs/.template/state.json"]; got != "{}" {
		t.Errorf("a changed template: got %q", got)
	}
	want.Force, want.Backup, want.Config = true, true, []byte("# other\n")
	initialise(t, root, want)
	after := tree(t, root)
	if after["CLAUDE.md"] != "my own" || after["agency.toml.bak"] != "# mine\n" || after[agency.ProjectFile] != "# other\n" || after["agent_runs/.template/state.json"] == "{}" {
		t.Errorf("by force: got %q", after)
	}
}

func TestIgnoreBlock(t *testing.T) {
	t.Parallel()
	const block = "# >>> agency\n/.agency/\n/agent_runs/\n# <<< agency\n"
	for name, test := range map[string]struct{ before, after string }{
		"empty":           {"", block},
		"behind":          {"*.o\n", "*.o\n\n" + block},
		"no line end":     {"*.o", "*.o\n\n" + block},
		"carriage return": {"*.o\r\n", "*.o\r\n\r\n" + strings.ReplaceAll(block, "\n", "\r\n")},
		"replaced":        {"a\n# >>> agency\nold\n# <<< agency\nb\n", "a\n" + block + "b\n"},
		"without its end": {"a\n# >>> agency\nb\n", "a\n" + block + "b\n"},
		"only an end":     {"# <<< agency\n", "# <<< agency\n\n" + block},
	} {
		root := t.TempDir()
		put(t, root, ".gitignore", test.before)
		initialise(t, root, scaffold.ProjectFiles{})
		if got := tree(t, root)[".gitignore"]; got != test.after {
			t.Errorf("%s: got %q", name, got)
		}
		if got := initialise(t, root, scaffold.ProjectFiles{})[".gitignore"]; got != scaffold.Exists {
			t.Errorf("%s, again: got %s", name, got)
		}
	}
}

// The other lines of a .gitignore stay, and a second time changes nothing.
func TestIgnoreBlockKeepsAll(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"*.o\n", "\n", "# <<< agency\n", "x\r\n", "/.agency/\n", "no end"})).Draw(rt, "lines")
		before := strings.Join(lines, "")
		put(t, root, ".gitignore", before)
		initialise(t, root, scaffold.ProjectFiles{Window: true})
		first := tree(t, root)[".gitignore"]
		if !strings.HasPrefix(first, before) {
			rt.Errorf("%q became %q", before, first)
		}
		initialise(t, root, scaffold.ProjectFiles{})
		initialise(t, root, scaffold.ProjectFiles{Window: true})
		if got := tree(t, root)[".gitignore"]; got != first {
			rt.Errorf("%q became %q", first, got)
		}
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "ai_docs/scout/a/deep", "1")
	put(t, root, "ai_docs/scout/b", "new")
	put(t, root, "scout_outputs/archive/b", "old")
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "ai_docs/scout/link")); err != nil {
		t.Fatal(err)
	}
	got := initialise(t, root, scaffold.ProjectFiles{Standard: true, Archive: true})
	if got["scout_outputs/archive/a"] != scaffold.Moved || got["ai_docs/scout/b"] != scaffold.Kept || got["scout_outputs/archive/link"] != scaffold.Moved {
		t.Errorf("got %v", got)
	}
	files := tree(t, root)
	for rel, want := range map[string]string{
		"scout_outputs/archive/a/deep": "1", "scout_outputs/archive/b": "old", "ai_docs/scout/b": "new", "scout_outputs/archive/link": "-> /etc/passwd",
	} {
		if files[rel] != want {
			t.Errorf("%s: got %q", rel, files[rel])
		}
	}
	if err := os.Remove(filepath.Join(root, "scout_outputs/archive/b")); err != nil {
		t.Fatal(err)
	}
	initialise(t, root, scaffold.ProjectFiles{Standard: true, Archive: true})
	if _, err := os.Lstat(filepath.Join(root, "ai_docs/scout")); !os.IsNotExist(err) {
		t.Errorf("the emptied folder: got %v", err)
	}
}

// Nothing outside is read or written, wherever the repository contains a link.
func TestProjectFollowsNoLinks(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{agency.ProjectFile, ".gitignore", "agent_runs", "agent_runs/.template", "specs", "scout_outputs", "ai_docs"} {
		root, external := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, rel)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(external, filepath.Join(root, rel)); err != nil {
			t.Fatal(err)
		}
		_, err := scaffold.PlanProject(root, scaffold.ProjectFiles{Window: true, Standard: true, Archive: true})
		if !agency.IsCode(err, agency.CodeInvalidPath) || !strings.Contains(err.Error(), rel) {
			t.Errorf("%s: got %v", rel, err)
		}
		if diff := cmp.Diff(map[string]string{}, tree(t, external)); diff != "" {
			t.Errorf("%s: outside:\n%s", rel, diff)
		}
	}
}

func TestProjectType(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if got := scaffold.ProjectType(root); got != "other" {
		t.Errorf("got %q", got)
	}
	put(t, root, "requirements.txt", "")
	if got := scaffold.ProjectType(root); got != "python" {
		t.Errorf("got %q", got)
	}
	put(t, root, "package.json", "{}")
	if got := scaffold.ProjectType(root); got != "node" {
		t.Errorf("got %q", got)
	}
}

// The diff shows what would be written: all of a new file, and the changes of an existing one.
func TestDiff(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, ".gitignore", "a\nb\n")
	put(t, root, "CLAUDE.md", "mine\n")
	changes, err := scaffold.PlanProject(root, scaffold.ProjectFiles{Config: []byte("one\ntwo\n"), Standard: true})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range changes {
		if text := changes[i].Diff(); text != "" {
			got[changes[i].Path] = text
		}
	}
	want := map[string]string{
		"agency.toml": "--- /dev/null\n+++ b/agency.toml\n@@ -0,0 +1,2 @@\n+one\n+two\n",
		".gitignore":  "--- a/.gitignore\n+++ b/.gitignore\n@@ -1,2 +1,7 @@\n a\n b\n+\n+# >>> agency\n+/.agency/\n+/agent_runs/\n+# <<< agency\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
