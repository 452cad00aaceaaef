package diff

import (
	"fmt"

	"agency"
	"agency/internal/diffview"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// near is the place of the cursor, by a line near it.
type near struct {
	place  place
	rows   int  // how many rows behind the line the cursor is
	remark bool // the cursor is on a comment
}

// nearby returns the place of the cursor by its line or, on a text, by the line that the text is about.
func (f *file) nearby() near {
	r := f.row()
	if r == nil {
		return near{}
	}
	step := -1
	if r.hunk {
		step = 1 // a header is about the lines that follow
	}
	for at := f.cursor.row; at >= 0 && at < len(f.rows); at += step {
		if place, ok := f.place(at); ok {
			return near{place, f.cursor.row - at, r.comment != nil}
		}
	}
	return near{}
}

// restore puts the cursor back to its place after the rows were made again, at the same height of the
// screen.
func (f *file) restore(n near) {
	was := f.cursor.row
	for at := range f.rows {
		place, ok := f.place(at)
		if !ok || place != n.place {
			continue
		}
		f.cursor = spot{row: at}
		if to := at + n.rows; to >= 0 && to < len(f.rows) && (!n.remark || f.rows[to].comment != nil) {
			f.cursor.row = to
		}
		break
	}
	f.cursor = spot{row: min(f.cursor.row, max(len(f.rows)-1, 0))}
	if f.top.row > 0 { // the first row stays the first
		f.top = spot{row: max(f.top.row+f.cursor.row-was, 0)}
	}
}

// arrange makes the rows for a width, with the comments below their lines. two shows both sides in columns.
func (f *file) arrange(width int, two bool, comments []agency.LineComment) {
	if f.arranged && f.two == two && f.width == width {
		return
	}
	if len(f.rows) > 0 {
		f.near = f.nearby()
	}
	f.rows, f.two, f.width, f.arranged = f.rows[:0], two, width, true
	for _, note := range f.notes {
		f.say(cell.Dim, note, nil)
	}
	about := f.placed(comments)
	for i := range f.hunks {
		h := &f.hunks[i]
		head := fmt.Sprintf(" @@ %d %s", max(h.New, 1), h.Header)
		f.rows = append(f.rows, row{hunk: true, text: cell.Of(cell.With(cell.Coloured(view.Cyan), "b"), expand(head))})
		f.arrangeHunk(h, about)
	}
	if f.truncated {
		f.say(cell.Dim, "… there is more of it: agency diff shows all", nil)
	}
	if len(f.rows) == 0 && f.path != "" {
		f.say(cell.Dim, "(no lines changed)", nil)
	}
	f.restore(f.near)
}

// say adds rows with a text, which may be that of a comment.
func (f *file) say(style cell.Style, text string, comment *agency.LineComment) {
	style, indent := cell.With(style, "b"), 1
	if comment != nil {
		indent = 3
	}
	for i, line := range cell.Wrap(style, text, indent, f.width, 0) {
		if comment != nil && i == 0 {
			line = append(cell.Of(style, " ◆ "), line[1:]...)
		}
		f.rows = append(f.rows, row{text: line, comment: comment})
	}
}

// remark adds rows with a comment. where tells where its line is, unless the comment is below the line.
func (f *file) remark(c *agency.LineComment, where string) {
	state := map[agency.CommentState]string{agency.CommentSent: "(sent) ", agency.CommentSending: "(may have reached the agent) "}[c.State]
	f.say(cell.Coloured(view.Yellow), state+where+c.Text, c)
}

// placed returns the comments on the file by their lines. It adds rows with the comments that the user can
// still send and whose lines are not shown.
func (f *file) placed(comments []agency.LineComment) map[place][]*agency.LineComment {
	about := map[place][]*agency.LineComment{}
	for i := range comments {
		if c := &comments[i]; c.File == f.path {
			about[placeOf(c)] = append(about[placeOf(c)], c)
		}
	}
	if len(about) == 0 {
		return nil
	}
	shown := map[place]bool{}
	for i := range f.hunks {
		for _, l := range f.hunks[i].Lines {
			shown[place{f.path, l.New, false}] = true
			shown[place{f.path, l.Old, true}] = l.Kind == diffview.Deleted
		}
	}
	shown[place{path: f.path}] = false
	for i := range comments {
		c := &comments[i]
		switch at := placeOf(c); {
		case c.File != f.path || c.State == agency.CommentSent || shown[at]:
		case at.line == 0:
			f.remark(c, fmt.Sprintf("on line %d, which has changed: ", c.Line))
		default:
			f.remark(c, fmt.Sprintf("on line %d, which is not shown: ", at.line))
		}
	}
	return about
}

// placeOf returns the line that a comment is about. Its number is 0 if the line is not there now.
func placeOf(c *agency.LineComment) place {
	return place{c.File, c.Now, c.Side == agency.SideOld}
}

// arrangeHunk adds the rows of a hunk, with the comments below their lines.
func (f *file) arrangeHunk(h *diffview.Hunk, about map[place][]*agency.LineComment) {
	line := func(r row) {
		f.rows = append(f.rows, r)
		if len(about) == 0 {
			return
		}
		if r.old != nil && r.old.Kind == diffview.Deleted {
			for _, c := range about[place{f.path, r.old.Old, true}] {
				f.remark(c, "")
			}
		}
		if r.new != nil && r.new.New > 0 {
			for _, c := range about[place{f.path, r.new.New, false}] {
				f.remark(c, "")
			}
		}
	}
	if f.two {
		for _, pair := range h.Pairs() {
			line(row{old: pair.Old, new: pair.New})
		}
		return
	}
	for i := range h.Lines {
		if l := &h.Lines[i]; l.Kind == diffview.Deleted {
			line(row{old: l})
		} else {
			line(row{new: l})
		}
	}
}
