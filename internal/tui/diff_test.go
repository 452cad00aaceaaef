package tui

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/api"
)

// diff is the answer of the daemon: three files, of which one moved.
func (u *user) diff(_ context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
	resp := api.DiffRunResponse{Revision: "t1", List: []agency.FileDiff{
		{Status: "M", Path: "login.go", Added: 3, Deleted: 1, Object: cmp.Or(u.object, "o1")},
		{Status: "A", Path: "image.png", Binary: true, Object: "o2"},
		{Status: "R", Path: "docs/new.md", From: "docs/old.md", Object: "o3"},
	}}
	switch req.Base {
	case api.DiffFromTarget:
		resp.List = resp.List[:1]
	case api.DiffFromLastTurn:
		resp.List = resp.List[1:]
	}
	switch req.File {
	case "":
		return resp, nil
	case "login.go":
		resp.Patch = "diff --git a/login.go b/login.go\n--- a/login.go\n+++ b/login.go\n@@ -3,3 +3,4 @@ func Login() {\n \treturn \"same\" // why\n-\told := 1\n+\tnew := 2\n+\tmore := 3\n \tend\n@@ -20 +21,2 @@\n last\n+\x1b[31mevil 界\n"
	case "image.png":
		resp.Patch = "diff --git a/image.png b/image.png\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/image.png differ\n"
	case "docs/new.md":
		resp.Patch = "diff --git a/docs/old.md b/docs/new.md\nsimilarity index 100%\nrename from docs/old.md\nrename to docs/new.md\n"
	}
	if req.IgnoreSpace {
		resp.Patch = ""
	}
	return resp, nil
}

// A user finds a text, copies its line, leaves white space out, and opens the file.
func TestDiffOfAFile(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d")
	u.sees("> M login.go", "@@ 3 func Login() {")
	u.presses("/")
	u.types("evil")
	u.presses("enter c")
	u.sees("comment on login.go:22>")
	u.presses("esc y")
	u.sees("the line is handed to the terminal")
	u.presses("/")
	u.types("nowhere")
	u.presses("enter")
	u.sees("nowhere is not in what is shown of this file")
	u.presses("w")
	u.sees("spaces off", "(no lines changed)")
	u.presses("w")
	u.sees("+    new := 2")
	u.presses("e")
	u.sees("its worktree is gone")
}

// A user scrolls sideways in long lines; a text that is found there comes into sight.
func TestDiffOfLongLines(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	long := strings.Repeat("界", 40) + strings.Repeat("0123456789", 12) + "the-end"
	u.m.desk.Daemon.DiffRun = func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{Revision: "t1", List: []agency.FileDiff{{Status: "M", Path: "long.txt", Added: 1, Deleted: 1}}}
		resp.Patch = "--- a/long.txt\n+++ b/long.txt\n@@ -1 +1 @@\n-short\n+" + long + "\n"
		return resp, nil
	}
	u.presses("d")
	u.sees("界…", "-short")
	u.presses("L")
	u.sees("from column 34", "1 + 界界") // half of a character is a blank
	u.presses("L L L L L L")
	u.sees("the-end", "from column 141")
	u.seesNot("short")
	u.presses("H H H H H H")
	u.sees("-short")
	u.seesNot("from column")
	u.presses("/")
	u.types("the-end")
	u.presses("enter")
	u.sees("the-end")
	u.presses("/")
	u.types("short")
	u.presses("enter")
	u.sees("-short")
}

// The files are a tree beside the lines. A folder with one thing in it has no row of its own.
func TestDiffTree(t *testing.T) {
	t.Parallel()
	u := seated(t, 160, 30)
	u.m.desk.Daemon.DiffRun = func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{Revision: "t1"}
		for _, path := range []string{"README.md", "docs/one/two/only.md", "src/app/a.go", "src/app/b.go", "src/app/deep/c.go", "src/app/deep/d.go", "z.go"} {
			resp.List = append(resp.List, agency.FileDiff{Status: "M", Path: path, Added: 1})
		}
		return resp, nil
	}
	u.presses("d")
	for i, row := range []string{"> M README.md", "  M docs/one/two/only.md", "  src/app/", "    M a.go", "    M b.go", "    deep/", "      M c.go", "      M d.go", "  M z.go"} {
		if line := strings.Split(ansi.Strip(u.m.Frame()), "\n")[i+1]; !strings.HasPrefix(line, row+" ") {
			t.Errorf("row %d is %q, want %q", i, line, row)
		}
	}
	u.presses("] ] ] ]")
	u.sees(">     M c.go")
	u.tell(tea.WindowSizeMsg{Width: 80, Height: 30})
	u.sees("> M src/app/deep/c.go")
}

// Invisible characters of names are left out, so names need not come in their order.
func TestDiffTreeOfUnsortedNames(t *testing.T) {
	t.Parallel()
	u := seated(t, 160, 30)
	u.m.desk.Daemon.DiffRun = func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{Revision: "t1"}
		for _, path := range []string{"P/long/a", "P/b", "P/long/d", "b/long/deep/x", "b/y"} {
			resp.List = append(resp.List, agency.FileDiff{Status: "M", Path: path, Added: 1})
		}
		return resp, nil
	}
	u.presses("d")
	u.sees("  P/ ", "M long/a", "M b ", "M long/d")
}

// A comment that was not sent can be changed and discarded, and a long one is seen whole.
func TestDiffComments(t *testing.T) {
	t.Parallel()
	u := seated(t, 60, 30)
	long := strings.Repeat("please explain ", 6) + "this"
	u.presses("d")
	u.sees("@@ 3")
	u.presses("j j j c")
	u.types(long)
	u.presses("enter")
	u.sees("◆ please explain", "   explain please", "explain this")
	u.asked = nil
	u.presses("j c")
	u.types(" number")
	u.presses("enter")
	u.sees("explain this number")
	u.did("comment r_auth-fix [{File:login.go Line:4 Last:0 Old:false Text:"+long+" number}]", "discard [1] of r_auth-fix")
	u.presses("D n D y")
	u.did("discard [2] of r_auth-fix")
	u.seesNot("◆")
	u.presses("D")
	u.sees("there is no comment at the cursor")
}

// A user reads a difference file by file, comments on lines as they are and were, and sends that.
func TestDiff(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d")
	u.sees("diff of auth-fix +3 -1  0/3 reviewed", "> M login.go", "docs/old.md → new.md", "@@ 3 func Login() {", "-    old := 1", "+    new := 2")
	u.presses("j j j c")
	u.types("why 2?")
	u.sees("comment on login.go:4> why 2?")
	u.presses("enter")
	u.did("comment r_auth-fix [{File:login.go Line:4 Last:0 Old:false Text:why 2?}]")
	u.sees("◆ why 2?")
	u.presses("k c")
	u.types("keep it")
	u.presses("enter")
	u.did("comment r_auth-fix [{File:login.go Line:4 Last:0 Old:true Text:keep it}]")
	u.presses("S")
	u.sees("send 2 comments to the agent of auth-fix?")
	u.presses("y")
	u.did("send comments r_auth-fix")
	u.presses("n")
	u.sees("evil 界")
	u.presses("x")
	u.sees("1/3 reviewed", "> A image.png", "Binary files /dev/null and b/image.png differ")
	u.presses("]")
	u.sees("rename from docs/old.md")
	u.presses("b")
	u.sees("last turn", "0/2 reviewed")
	u.presses("b")
	u.sees("to target", "1/1 reviewed")
	u.presses("q")
	u.sees("NEEDS YOU", "[Screen]")
	u.presses("d")
	u.sees("1/3 reviewed")
}

// What was reviewed is kept beyond the dashboard, until the file changes or the mark is taken back.
func TestReviewedIsKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d x x")
	u.sees("2/3 reviewed")
	sits := func() *user {
		later := seated(t, 80, 30)
		later.home = u.home
		return later
	}
	later := sits()
	later.presses("d")
	later.sees("2/3 reviewed", "✓M login.go")
	later.presses("x")
	later.sees("1/3 reviewed")
	later = sits()
	later.object = "o1-changed"
	later.presses("d")
	later.sees("1/3 reviewed")
	if err := os.WriteFile(filepath.Join(u.home, "r_auth-fix", "reviewed"), []byte("+ o1 \"login.go\"\n? \x1b[2J\n+ o3 \"docs/n"), 0o600); err != nil {
		t.Fatal(err)
	}
	later = sits()
	later.presses("d")
	later.sees("1/3 reviewed", "✓M login.go")
}

// A mark that cannot be kept says so.
func TestReviewedIsNotKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	if err := os.MkdirAll(filepath.Join(u.home, "r_auth-fix", "reviewed"), 0o700); err != nil {
		t.Fatal(err)
	}
	u.presses("d")
	u.sees("what was reviewed before cannot be read")
	u.presses("x")
	u.sees("cannot be kept", "1/3 reviewed")
}

// The layout goes by the width, and one key chooses it.
func TestDiffFrames(t *testing.T) {
	t.Parallel()
	u := seated(t, 160, 50)
	u.presses("d")
	golden(t, u, "diff-160x50")
	u.presses("|")
	u.sees("    4       -    old := 1")
	u = seated(t, 60, 20)
	u.presses("d n")
	golden(t, u, "diff-60x20")
	for _, size := range [][2]int{{20, 5}, {300, 90}, {99, 24}, {120, 40}} {
		u = seated(t, size[0], size[1])
		u.presses("d G x c")
		u.types("界")
		golden(t, u, "")
	}
}

// A run without a difference, or whose difference cannot be read, says so.
func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.m.desk.Daemon.DiffRun = func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error) {
		return api.DiffRunResponse{}, u.refuse
	}
	u.presses("d")
	u.sees("nothing has changed")
	u.refuse = agency.Errorf(agency.CodeInvalidState, "the worktree of auth-fix is gone")
	u.presses("c R")
	if !strings.Contains(u.m.Frame(), "is gone") {
		t.Error("the error is not shown")
	}
}
