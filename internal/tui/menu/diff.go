package menu

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/diffview"
	"agency/internal/tui/page"
)

// compared names each base that the work of a run is compared with.
var compared = map[string]string{
	api.DiffFromBase: "where it began", api.DiffFromLastTurn: "when its agent rested before its last turn", api.DiffFromTarget: "where it left its branch",
}

// review lets the user read what a run changed, and comment on its lines.
type review struct {
	run     *api.Run
	daemon  *page.Daemon
	console *console
	env     []string
	config  string
}

// changes lists the files that a run changed, and reads those that the user chooses.
func (v *review) changes(ctx context.Context) error {
	req := api.DiffRunRequest{Run: string(v.run.ID), Base: api.DiffFromBase}
	letters := []letter{
		{"c", "compare", "compare with where it began, with its last turn, or with where it left its branch"},
		{"w", "white space", "leave out what differs in white space only, or read it again"},
	}
	return v.console.browse(ctx, "number of a file", "nothing has changed", func() (rows, error) {
		list := req
		list.List = true
		resp, err := v.daemon.DiffRun(ctx, list)
		if left := resp.LeftOut.Files; left > 0 {
			v.console.say("%s too large to read: agency diff %s", page.Count(left, "file is", "files are"), v.run.Ref())
		}
		return rows{fileTexts(resp.List), letters, func(c choice) error {
			switch c.letter {
			case "c":
				req.Base = page.NextDiffBase(req.Base)
				v.console.say("compared with %s", compared[req.Base])
				return nil
			case "w":
				req.IgnoreSpace = !req.IgnoreSpace
				v.console.say("white space %s", map[bool]string{true: "does not count", false: "counts"}[req.IgnoreSpace])
				return nil
			}
			return v.file(ctx, &resp.List[c.rows[0]], req)
		}}, err
	})
}

// fileTexts returns the rows of files.
func fileTexts(files []agency.FileDiff) []string {
	words := map[string]string{"A": "new", "M": "changed", "D": "deleted", "R": "renamed", "C": "copied", "T": "another type"}
	texts := make([]string, len(files))
	for i := range files {
		f := &files[i]
		texts[i] = f.Path + ", " + words[f.Status]
		if f.From != "" {
			texts[i] += " from " + f.From
		}
		switch {
		case f.Binary:
			texts[i] += ", binary"
		case f.Added+f.Deleted > 0:
			texts[i] += fmt.Sprintf(", %d added, %d deleted", f.Added, f.Deleted)
		}
		if f.Reviewed {
			texts[i] += ", reviewed"
		}
	}
	return texts
}

// file reads what changed in a file, some lines at a time, takes comments on them, and marks the file
// as reviewed.
func (v *review) file(ctx context.Context, f *agency.FileDiff, req api.DiffRunRequest) error {
	req.File, req.MaxBytes = f.Path, page.FileBytes
	resp, err := v.daemon.DiffRun(ctx, req)
	if err != nil {
		return v.console.fail(err)
	}
	lines := fileLines(resp.Patch, v.comments(ctx, f.Path))
	if resp.Truncated {
		lines = append(lines, "there is more of it: agency diff "+v.run.Ref()+" shows all")
	}
	for {
		n := min(pageRows, len(lines))
		for _, line := range lines[:n] {
			v.console.sayCode(line)
		}
		lines = lines[n:]
		prompt := "number of a line and a comment"
		if len(lines) > 0 {
			prompt = page.Count(len(lines), "more row", "more rows") + ", an empty line: read on, " + prompt
		}
		for typed := true; typed; {
			line, err := v.console.command(ctx, prompt+", r: reviewed, s: send, x: discard, b: back, ?: help")
			if err != nil || line == back || line == "" && len(lines) == 0 {
				return err
			}
			if line == "r" {
				return v.mark(ctx, f)
			}
			if typed = line != ""; typed {
				if err := v.comment(ctx, f.Path, line); err != nil {
					return err
				}
			}
		}
	}
}

// mark marks a file as reviewed with the content that was read, or takes the mark back.
func (v *review) mark(ctx context.Context, f *agency.FileDiff) error {
	req := api.MarkReviewedRequest{Run: string(v.run.ID), Files: []agency.ReviewedFile{{Path: f.Path, Object: f.Object}}, Undo: f.Reviewed}
	if _, err := v.daemon.MarkReviewed(ctx, req); err != nil {
		return v.console.fail(err)
	}
	if req.Undo {
		v.console.say("%s is not marked as reviewed any more", f.Path)
	} else {
		v.console.say("%s is reviewed, until it changes", f.Path)
	}
	return nil
}

// comments returns the comments on a file.
func (v *review) comments(ctx context.Context, path string) []agency.LineComment {
	resp, err := v.daemon.ReviewRun(ctx, api.ReviewRunRequest{Run: string(v.run.ID), Env: v.env, Config: v.config})
	if err != nil { // the lines are read without them
		e := agency.AsError(err)
		v.console.inform(agency.Errorf(e.Code, "the comments on %s cannot be read: %w", v.run.Ref(), err).WithHint("%s", e.Hint))
		return nil
	}
	of := []agency.LineComment{}
	for i := range resp.Comments {
		if resp.Comments[i].File == path {
			of = append(of, resp.Comments[i])
		}
	}
	return of
}

// fileLines returns the rows of a patch, each line with its number, and the comments below their
// lines.
func fileLines(patch string, comments []agency.LineComment) []string {
	hunks, lines := diffview.Parse(patch)
	for i := range hunks {
		h := &hunks[i]
		lines = append(lines, strings.TrimRight(fmt.Sprintf("at line %d %s", max(h.New, 1), h.Header), " "))
		for j := range h.Lines {
			l := &h.Lines[j]
			at, old := l.New, false
			switch l.Kind {
			case diffview.Added:
				lines = append(lines, fmt.Sprintf("added %d: %s", l.New, l.Text))
			case diffview.Deleted:
				at, old = l.Old, true
				lines = append(lines, fmt.Sprintf("deleted -%d: %s", l.Old, l.Text))
			case diffview.Note:
				lines = append(lines, l.Text)
			case diffview.Same:
				lines = append(lines, fmt.Sprintf("%d: %s", l.New, l.Text))
			}
			for k := range comments {
				if c := &comments[k]; at > 0 && c.Now == at && (c.Side == agency.SideOld) == old {
					sent := map[bool]string{true: ", sent"}[c.State == agency.CommentSent]
					lines = append(lines, fmt.Sprintf("comment %d%s: %s", c.Number, sent, c.Text))
				}
			}
		}
	}
	if len(lines) == 0 {
		return []string{"no lines changed"}
	}
	return lines
}

// comment handles what the user typed below the lines of a file: a comment, or a command about comments.
func (v *review) comment(ctx context.Context, path, line string) error {
	run := string(v.run.ID)
	first, text, _ := strings.Cut(line, " ")
	switch text = strings.TrimSpace(text); first {
	case help:
		v.console.say("12 why this?: a comment on line 12; -12 why?: on the deleted line 12")
		v.console.say("r: the file is reviewed, or not any more; s: send the comments to the agent; x 3: discard comment 3, which was not sent; b: back; q: leave")
		return nil
	case "s":
		_, err := v.console.do(ctx, v.run.Ref(), &action{sure: "send the comments to the agent of %s?", do: func(ctx context.Context, _ string) (string, error) {
			resp, err := v.daemon.SendComments(ctx, api.SendCommentsRequest{Run: run})
			if err == nil && !resp.Confirmed {
				return "typed, but agency did not see the agent accept it", nil
			}
			return "the comments are sent", err
		}})
		return err
	case "x":
		return v.discard(ctx, text)
	}
	at, wrong := strconv.Atoi(first)
	if wrong != nil || at == 0 || text == "" {
		v.console.say("%q is not a number of a line and a comment, such as: 12 why this?", line)
		return nil
	}
	req := api.CommentRequest{File: path, Line: max(at, -at), Old: at < 0, Text: text}
	if _, err := v.daemon.AddComments(ctx, api.AddCommentsRequest{Run: run, Comments: []api.CommentRequest{req}}); err != nil {
		return v.console.fail(err)
	}
	v.console.say("comment on line %d of %s kept; s sends it", req.Line, path)
	return nil
}

// discard discards a comment that the agent does not have.
func (v *review) discard(ctx context.Context, text string) error {
	number, wrong := strconv.Atoi(text)
	if wrong != nil {
		v.console.say("%q is not a number of a comment, such as: x 3", text)
		return nil
	}
	_, err := v.console.do(ctx, v.run.Ref(), &action{sure: fmt.Sprintf("discard comment %d on %%s?", number), do: func(ctx context.Context, _ string) (string, error) {
		_, err := v.daemon.DiscardComments(ctx, api.DiscardCommentsRequest{Run: string(v.run.ID), Numbers: []int{number}})
		return "the comment is discarded", err
	}})
	return err
}
