package menu_test

import (
	"context"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
)

// A file is read line by line, with its spaces and the numbers by which a user comments.
func TestMenuDiff(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.comments = []agency.LineComment{{Number: 1, File: "login.go", Now: 4, Text: "why 2?"}, {Number: 2, File: "login.go", Side: agency.SideOld, Now: 4, Text: "good riddance", State: agency.CommentSent}}
	u.types("2 8 1 4_why_new? -4_why_gone? 12 x_1 y ? s y b b 1")
	u.hears("1. login.go, changed, 1 added, 1 deleted", "at line 3 func Login() {\n3:     same\ndeleted -4: old\ncomment 2, sent: good riddance\nadded 4: new\ncomment 1: why 2?\n",
		"comment on line 4 of login.go kept; s sends it", "such as: 12 why this?", "discard comment 1 on search? y/n\nthe comment is discarded", "-12 why?",
		"send the comments to the agent of search? y/n\nthe comments are sent", "number of a file", "number of an action", "one row")
	u.did("comment login.go:4 why new?, deleted false", "comment login.go:4 why gone?, deleted true", "discard [1]", "send comments r_2")
}

// Comments that cannot be read are not taken for none; the lines are read without them.
func TestMenuDiffWithoutComments(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.daemon.ReviewRun = func(context.Context, api.ReviewRunRequest) (api.ReviewRunResponse, error) {
		return api.ReviewRunResponse{}, agency.Errorf(agency.CodeBadRef, "there is no branch \"next\" to land in").WithHint("git branch next")
	}
	u.types("2 8 1 s y b b")
	u.hears("error: the comments on search cannot be read: there is no branch \"next\" to land in\ngit branch next\nat line 3 func Login() {", "the comments are sent")
	u.did("send comments r_2")
}

// A user marks a file as reviewed, and takes that back.
func TestMenuReviewed(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("2 8 1 r 1 r b b")
	u.hears("login.go is reviewed, until it changes\n1. login.go, changed, 1 added, 1 deleted, reviewed", "login.go is not marked as reviewed any more\n1. login.go, changed, 1 added, 1 deleted\n", "number of an action")
	u.did("mark [{login.go o1}]", "mark [{login.go o1}]")
}

// A long file is read a part at a time, and comments can come between.
func TestMenuLongDiff(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.patch = "@@ -1,0 +1,30 @@\n" + strings.Repeat("+new\n", 30)
	u.types("2 8 1 5_why? . . b 1")
	u.hears("added 19: new\n11 more rows, an empty line: read on, number of a line and a comment", "comment on line 5", "11 more rows", "added 20: new", "added 30: new\nnumber of a line and a comment", "number of a file", "number of an action", "one row")
}

// The work is compared with where it began, with its last turn, or with where it left its branch.
func TestMenuCompares(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	for i, want := range []string{api.DiffFromBase, api.DiffFromLastTurn, api.DiffFromTarget, api.DiffFromBase} {
		u.types("2 8" + strings.Repeat(" c", i) + " 1")
		if u.based != want {
			t.Errorf("compared with %s, want %s", u.based, want)
		}
	}
	u.types("2 8 c w w b")
	u.hears("compared with when its agent rested before its last turn\n1. login.go", "white space does not count", "white space counts")
}
