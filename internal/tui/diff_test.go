package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	for i := range resp.List {
		f := &resp.List[i]
		f.Reviewed = u.marked[agency.ReviewedFile{Path: f.Path, Object: f.Object}]
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

// Comments that cannot be read are not taken for none.
func TestDiffWithoutComments(t *testing.T) {
	t.Parallel()
	u := seated(t, 200, 30)
	review := u.m.desk.Daemon.ReviewRun
	u.comments = []agency.LineComment{{Number: 1, File: "login.go", Line: 4, Now: 4, Text: "why 2?", State: agency.CommentOpen}}
	u.m.desk.Daemon.ReviewRun = func(context.Context, api.ReviewRunRequest) (api.ReviewRunResponse, error) {
		return api.ReviewRunResponse{}, agency.Errorf(agency.CodeBadRef, "there is no branch \"next\" to land in")
	}
	u.presses("d")
	u.sees("+    new := 2")
	u.presses("S")
	u.sees(`the comments on auth-fix cannot be read: there is no branch "next" to land in`, "agency review auth-fix --send sends them unseen")
	u.m.desk.Daemon.ReviewRun = review
	u.waits(readFor)
	u.presses("R S")
	u.sees("◆ why 2?", "send 1 comment to the agent of auth-fix?")
	u.presses("y")
	u.did("send comments r_auth-fix")
}

// What was reviewed is kept beyond the dashboard, until the file changes or the mark is taken back.
func TestReviewedIsKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d x x")
	u.sees("2/3 reviewed")
	later := seated(t, 80, 30)
	later.marked = u.marked
	later.presses("d")
	later.sees("2/3 reviewed", "✓M login.go")
	later.presses("x")
	later.sees("1/3 reviewed")
	later.presses("x")
	later.object = "o1-changed"
	later.presses("R")
	later.sees("1/3 reviewed", " M login.go")
}

// A mark that is not kept is not shown.
func TestReviewedIsNotKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 30)
	u.presses("d")
	u.refuse = errors.New("the disk is full")
	u.presses("x")
	u.sees("the disk is full", "0/3 reviewed")
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

// code is a session at the diff of one file, with this patch and, from 1, these comments.
func code(t *testing.T, width, height int, patch string, comments ...agency.LineComment) *user {
	t.Helper()
	u := seated(t, width, height)
	u.comments = comments
	u.m.desk.Daemon.DiffRun = func(_ context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{List: []agency.FileDiff{{Status: "M", Path: "a.txt", Object: "o"}}}
		if !req.List {
			resp.Patch = strings.ReplaceAll(patch, "CONTEXT", strconv.Itoa(req.Context))
		}
		return resp, nil
	}
	u.m.desk.Daemon.DiscardComments = func(_ context.Context, req api.DiscardCommentsRequest) (api.CommentsResponse, error) {
		u.comments = slices.DeleteFunc(u.comments, func(c agency.LineComment) bool { return slices.Contains(req.Numbers, c.Number) })
		return api.CommentsResponse{}, u.record("discard %v", req.Numbers)
	}
	u.presses("d")
	u.sees("a.txt")
	return u
}

// A user reaches the rest of a long line: it moves by half of the code, and the numbers stay.
func TestDiffSideways(t *testing.T) {
	t.Parallel()
	long := "0123456789." + strings.Repeat("界", 20) + "abcdefghijklmnopqrstuvwxyz"
	u := code(t, 60, 20, "@@ -1,3 +1,3 @@\n short\n-gone\n+"+long+"\n \tdeep\n")
	u.sees("1     1  short", "2       -gone", "      2 +0123456789."+strings.Repeat("界", 17)+"…")
	u.presses("L")
	u.sees("      2 +… "+strings.Repeat("界", 13)+"abcdefghijklmnopqr…", "1     1  …   ", "2       -…   ")
	u.presses("H")
	u.sees("2 +0123456789.界")
	u.presses("L L")
	u.sees("2 +…界界abcdefghijklmnopqrstuvwxyz ", "3     3  …   ")
	u.presses("L")
	u.sees("no line that is shown has more on the right", "2 +…界界abcdefghijklmnopqrstuvwxyz ")
	u.presses("y")
	u.sees("the line is handed to the terminal")
	u.presses("H H /")
	u.types("xyz")
	u.presses("enter")
	u.sees("xyz  ")
	u.presses("/")
	u.types("gone")
	u.presses("enter c")
	u.sees("2       -gone ", "comment on a.txt:2>")
}

// A user wraps long lines. Both sides stay beside each other, and the cursor goes through all rows.
func TestDiffWrapped(t *testing.T) {
	t.Parallel()
	u := code(t, 150, 24, "@@ -1,3 +1,3 @@\n one\n-"+strings.Repeat("old ", 40)+"\n+"+strings.Repeat("new ", 13)+"\n two\n")
	u.presses("W")
	golden(t, u, "diff-wrapped-150x24")
	u.presses("j j j j j c")
	u.sees("comment on a.txt:2>")
	u.presses("esc j c")
	u.sees("comment on a.txt:3>")
	u.presses("esc L")
	u.sees("long lines are wrapped")
	u.presses("|")
	u.sees("    2       -old", "│            -d old")
	u = code(t, 60, 12, "@@ -1 +1 @@\n-"+strings.Repeat("x", 500)+"yz"+"\n+one\n+"+strings.Repeat("two界", 99)+"end\n")
	u.presses("/")
	u.types("xyz")
	u.presses("enter")
	u.sees("…xxxx", "xyz  ")
	u.presses("W")
	u.sees("xyz")
	u.presses("g")
	u.seesNot("xyz")
	u.presses("/ enter")
	u.sees("xyz")
	u.presses("G")
	u.sees("end  ")
	u.presses("g")
	u.sees("@@ 1")
	u.seesNot("xy")
	u.presses("j j j j j j j j j j j")
	u.sees("xyz")
}

// A user sees more lines around the changes, and stays at the line.
func TestDiffContext(t *testing.T) {
	t.Parallel()
	u := code(t, 80, 24, "@@ -1,3 +1,3 @@\n one\n-was\n+CONTEXT lines\n")
	u.presses("j j j }")
	u.sees("+6 lines", "context 6")
	u.presses("{")
	u.sees("+3 lines")
	u.seesNot("context")
	u.presses("{ { {")
	u.sees("+1 lines", "context 1")
	u.presses("c")
	u.sees("comment on a.txt:2>")
}

// A user edits and discards comments that the agent does not have, also those whose lines are not
// there. All of a comment can be read.
func TestDiffComments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("please ", 20) + "end"
	u := code(t, 60, 24, "@@ -1,2 +1,2 @@\n one\n-was\n+is\n",
		agency.LineComment{Number: 1, File: "a.txt", Side: agency.SideNew, Line: 2, Last: 3, Now: 2, Text: long, State: agency.CommentOpen},
		agency.LineComment{Number: 2, File: "a.txt", Side: agency.SideOld, Line: 2, Last: 2, Now: 2, Text: "sent before", State: agency.CommentSent},
		agency.LineComment{Number: 3, File: "a.txt", Side: agency.SideNew, Line: 9, Last: 9, Text: "lost", State: agency.CommentOpen},
		agency.LineComment{Number: 4, File: "a.txt", Side: agency.SideNew, Line: 40, Last: 40, Now: 41, Text: "far", State: agency.CommentOpen})
	u.sees(" ◆ please please", "\n   please", "please end  ", "◆ (sent) sent before", "◆ on line 9, which has changed: lost", "◆ on line 41, which is not shown: far")
	u.presses("g c")
	u.sees("its line has changed since")
	u.presses("G c")
	u.types(" now")
	u.presses("enter")
	u.did("comment r_auth-fix [{File:a.txt Line:2 Last:3 Old:false Text:"+long+" now}]", "discard [1]")
	u.sees("end now")
	u.presses("g D")
	u.sees(`discard the comment "lost"?`)
	u.presses("n D y")
	u.did("discard [3]")
	u.seesNot("lost")
	u.presses("/")
	u.types("sent before")
	u.presses("enter D")
	u.sees("the agent has this comment already")
	u.presses("k D")
	u.sees("there is no comment at the cursor")
	u.did()
}

// An edited comment is kept when the old one cannot be discarded, or the new one not be kept.
func TestDiffCommentNotEdited(t *testing.T) {
	t.Parallel()
	u := code(t, 80, 24, "@@ -1 +1 @@\n-was\n+is\n", agency.LineComment{Number: 7, File: "a.txt", Side: agency.SideNew, Line: 1, Last: 1, Now: 1, Text: "why", State: agency.CommentOpen})
	u.presses("j j c enter")
	u.did()
	u.m.desk.Daemon.AddComments = func(context.Context, api.AddCommentsRequest) (api.CommentsResponse, error) {
		return api.CommentsResponse{}, agency.Errorf(agency.CodeInvalidState, "too many")
	}
	u.presses("c")
	u.types("?")
	u.presses("enter")
	u.sees("too many", "◆ why  ")
	u.did()
}

// The files are a tree beside the lines, below the path of the one that is shown.
func TestDiffTree(t *testing.T) {
	t.Parallel()
	u := seated(t, 120, 14)
	files := []agency.FileDiff{{Status: "M", Path: "a.go"}, {Status: "A", Path: "docs/guide/en/start.md", Added: 12, Deleted: 3}}
	for n := range 10_000 {
		files = append(files, agency.FileDiff{Status: "M", Path: fmt.Sprintf("src/app/%05d.go", n), Added: n})
	}
	files = append(files, agency.FileDiff{Status: "R", Path: "src/界/b.go", From: "lib/b.go"}, agency.FileDiff{Status: "R", Path: "src/界/d.go", From: "src/界/c.go"})
	u.m.desk.Daemon.DiffRun = func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error) {
		return api.DiffRunResponse{List: files, Truncated: true}, nil
	}
	u.presses("d ] ] x")
	golden(t, u, "diff-tree-120x14")
	u.presses("] ] ] ] ] ] ] ] ] ] ] ]")
	u.sees("> M     00013.go", "│ src/app/00013.go")
	u.presses("[ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [")
	u.sees("\n> M a.go", "\n    docs/guide/en/")
	for range len(files) {
		u.presses("]")
	}
	u.sees("      界/", "  R     lib/b.go → b.go", "> R     c.go → d.go", "\n  and more, which are not shown")
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
	u.sees("    P/ ", "      long/ ", "M     a ", "M   b ", "M     d ", "      long/deep/ ")
}
