package scaffold_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/contract"
	"agency/internal/scaffold"
)

var at = time.Date(2026, 1, 31, 10, 30, 0, 0, time.FixedZone("", 3600))

// tree returns every file beneath a folder with its content, and each link with its target.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			files[rel] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWorktree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	prompt := "fix the login\r\n\xff without a last line end"
	if err := scaffold.Worktree(root, []byte("an earlier try"), at.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := scaffold.Worktree(root, []byte(prompt), at); err != nil {
		t.Fatal(err)
	}
	got := tree(t, root)
	if !scaffold.ReportUnfilled([]byte(got[agency.ReportFile])) {
		t.Error("a new report counts as filled in")
	}
	delete(got, agency.ReportFile)
	want := map[string]string{
		agency.PromptFile:       prompt,
		agency.InstructionsFile: string(scaffold.Instructions()),
		agency.ContractFile: `{
  "schema_version": "1.0",
  "status": "working",
  "updated_at": "2026-01-31T09:30:00Z",
  "summary": "Starting work",
  "questions": [],
  "blockers": [],
  "how_to_test": "",
  "risks": []
}
`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("worktree (-want +got):\n%s", diff)
	}
}

func TestContractLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := scaffold.Worktree(root, []byte("task"), at); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(root, agency.ReportFile)
	if err := os.WriteFile(report, []byte("done"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	if err := scaffold.Contract(root, at); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, root)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
}

// hostilePlans put something of an agent's where agency writes its files.
var hostilePlans = []struct {
	name string
	plan func(root, external string) error
	want string // what the error names, beneath root; empty is no error
}{
	{".agency is a link", func(root, external string) error {
		return os.Symlink(external, filepath.Join(root, ".agency"))
	}, ".agency"},
	{".agency is a link to nothing", func(root, external string) error {
		return os.Symlink(filepath.Join(external, "new"), filepath.Join(root, ".agency"))
	}, ".agency"},
	{".agency is a link inside", func(root, _ string) error {
		return os.Symlink(".", filepath.Join(root, ".agency"))
	}, ".agency"},
	{".agency is a file", func(root, _ string) error {
		return os.WriteFile(filepath.Join(root, ".agency"), nil, 0o600)
	}, ".agency"},
	{"state is a link", func(root, external string) error {
		if err := os.Mkdir(filepath.Join(root, ".agency"), 0o700); err != nil {
			return err
		}
		return os.Symlink(external, filepath.Join(root, ".agency/state"))
	}, ".agency/state"},
	{"the prompt is a folder", func(root, _ string) error {
		return os.MkdirAll(filepath.Join(root, ".agency/prompt.md/x"), 0o700)
	}, ".agency/prompt.md"},
	{"the prompt is a link, which is replaced", func(root, external string) error {
		if err := os.Mkdir(filepath.Join(root, ".agency"), 0o700); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(external, "secret"), filepath.Join(root, ".agency/prompt.md"))
	}, ""},
}

func TestWorktreeInHostileRepository(t *testing.T) {
	t.Parallel()
	for _, tt := range hostilePlans {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root, external := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(external, "secret"), []byte("keep"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.plan(root, external); err != nil {
				t.Fatal(err)
			}
			err := scaffold.Worktree(root, []byte("task"), at)
			if diff := cmp.Diff(map[string]string{"secret": "keep"}, tree(t, external)); diff != "" {
				t.Errorf("outside the worktree (-want +got):\n%s", diff)
			}
			if tt.want == "" {
				if got := tree(t, root)[agency.PromptFile]; err != nil || got != "task" {
					t.Errorf("got error %v and prompt %q", err, got)
				}
				return
			}
			if !agency.IsCode(err, agency.CodeInvalidPath) || !strings.Contains(err.Error(), filepath.Join(root, tt.want)) {
				t.Errorf("got %v, want E_INVALID_PATH that names %s", err, tt.want)
			}
		})
	}
}

func TestWorktreeWithoutRoot(t *testing.T) {
	t.Parallel()
	err := scaffold.Worktree(filepath.Join(t.TempDir(), "gone"), nil, at)
	if err == nil || agency.IsCode(err, agency.CodeInvalidPath) {
		t.Errorf("got %v, want an error that does not blame the repository", err)
	}
}

func TestInstructionsShowEveryStatus(t *testing.T) {
	t.Parallel()
	var said []agency.ReportedStatus
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(scaffold.Instructions(), -1) {
		c, err := contract.Parse(m[1])
		if err != nil {
			t.Errorf("%v in the example\n%s", err, m[1])
		}
		said = append(said, c.Status)
	}
	if !slices.Equal(said, agency.Words()) {
		t.Errorf("examples of %q, want %q", said, agency.Words())
	}
}

func TestReportUnfilled(t *testing.T) {
	t.Parallel()
	const template = "# Report\n\n## Summary\n\n<!-- what\nand why -->\n"
	tests := []struct {
		name, report string
		want         bool
	}{
		{"nothing", "", true},
		{"the template", template, true},
		{"with the line ends of Windows", strings.ReplaceAll(template, "\n", "\r\n"), true},
		{"headings alone", "# Report\n\n## Summary\n", true},
		{"empty lists", template + "\n- \n* \n---\n", true},
		{"a comment that is never closed", "# Report\n<!-- text\ntext", true},
		{"a sentence", template + "\nRefuses expired sessions.\n", false},
		{"a sentence before a comment", "Done. <!-- what -->", false},
		{"another script", template + "完了\n", false},
		{"a number", template + "\n- 42\n", false},
		{"no headings", "done", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := scaffold.ReportUnfilled([]byte(tt.report)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzReportUnfilled(f *testing.F) {
	f.Add([]byte("# Report\n<!-- x -->\ntext"))
	f.Add([]byte("<!--<!---->-->"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if scaffold.ReportUnfilled(data) && !scaffold.ReportUnfilled(slices.Concat(data, []byte("\n<!-- more"))) {
			t.Errorf("a comment fills in %q", data)
		}
	})
}
