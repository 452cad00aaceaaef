package tui

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// A user reads a difference file by file, comments on lines as they are and were, and sends that.
func TestDiff(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d")
	u.sees("diff of auth-fix +3 -1  0/3 reviewed", "> M login.go", "docs/old.md → docs/new.md", "@@ 3 func Login() {", "-    old := 1", "+    new := 2")
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
