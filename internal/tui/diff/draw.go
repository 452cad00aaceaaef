package diff

import (
	"fmt"
	"strings"

	"agency"
	"agency/internal/cli/term"
	"agency/internal/diffview"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// The widths at which the layout changes.
const (
	listColumns = 34  // of the files, beside the lines
	listBeside  = 100 // the files are beside the lines, not above
	twoColumns  = 110 // both sides are shown beside each other, in so many columns of lines
)

// file is the part of the difference that is read: the lines of one file.
type file struct {
	path      string
	hunks     []diffview.Hunk
	notes     []string
	truncated bool
	unified   bool // the user wants one column

	rows     []row
	arranged int  // for how many columns the rows are made; 0 when they must be made again
	two      bool // rows are pairs
	cursor   int
	top      int
	height   int
	left     int // how many columns of the lines are left of what is shown
	room     int // how many are shown
	widest   int // of the lines that are shown
}

// row is a row of the file: a hunk's header, a line or a pair of them, or a text about it.
type row struct {
	hunk     bool
	old, new *diffview.Line
	text     string
	style    cell.Style
	comment  *agency.LineComment // that the text is of
}

// place is a line that a comment is about.
type place struct {
	path string
	line int
	old  bool
}

// place returns the line at the cursor: as it is now or, where it is gone, as it was. At a comment it
// is the line of that.
func (f *file) place() (place, bool) {
	if f.cursor >= len(f.rows) {
		return place{}, false
	}
	r := &f.rows[f.cursor]
	switch {
	case r.comment != nil:
		return place{r.comment.File, r.comment.Now, r.comment.Side == agency.SideOld}, true
	case r.new != nil && r.new.New > 0:
		return place{f.path, r.new.New, false}, true
	case r.old != nil && r.old.Old > 0:
		return place{f.path, r.old.Old, true}, true
	default:
		return place{}, false
	}
}

func (f *file) move(by int) { f.cursor = min(max(f.cursor+by, 0), max(len(f.rows)-1, 0)) }

// hunk moves the cursor to the next hunk, or to the one before.
func (f *file) hunk(step int) {
	for at := f.cursor + step; at >= 0 && at < len(f.rows); at += step {
		if f.rows[at].hunk {
			f.cursor = at
			f.top = at // it is seen whole where there is room
			return
		}
	}
}

// arrange makes the rows for a width, with the comments below their lines.
func (f *file) arrange(width int, comments []agency.LineComment) {
	if f.arranged == width {
		return
	}
	two := width >= twoColumns && !f.unified
	f.rows, f.two, f.arranged = f.rows[:0], two, width
	say := func(style cell.Style, text string) { f.rows = append(f.rows, row{text: text, style: style}) }
	for _, note := range f.notes {
		say(cell.Dim, note)
	}
	line := func(r row) {
		f.rows = append(f.rows, r)
		for i := range comments {
			c := &comments[i]
			at, side := c.Now, r.new
			if c.Side == agency.SideOld {
				side = r.old
			}
			if c.File != f.path || side == nil || at == 0 || at != number(side, c.Side) || c.Side == agency.SideOld && side.Kind != diffview.Deleted {
				continue
			}
			f.rows = append(f.rows, commentRows(c, width)...)
		}
	}
	for i := range f.hunks {
		h := &f.hunks[i]
		f.rows = append(f.rows, row{hunk: true, text: fmt.Sprintf("@@ %d %s", max(h.New, 1), h.Header), style: cell.Coloured(view.Cyan)})
		if two {
			for _, pair := range h.Pairs() {
				line(row{old: pair.Old, new: pair.New})
			}
			continue
		}
		for n := range h.Lines {
			l := &h.Lines[n]
			r := row{new: l}
			if l.Kind == diffview.Deleted {
				r = row{old: l}
			}
			line(r)
		}
	}
	if f.truncated {
		say(cell.Dim, "… there is more of it: agency diff shows all")
	}
	if len(f.rows) == 0 && f.path != "" {
		say(cell.Dim, "(no lines changed)")
	}
	f.move(0)
}

// commentRows returns the rows of a comment, whole.
func commentRows(c *agency.LineComment, width int) []row {
	lead, rows := "◆ ", []row{}
	if c.State == agency.CommentSent {
		lead += "(sent) "
	}
	for _, line := range cell.Wrap(cell.Plain, lead+c.Text, 0, max(width-4, 1), 0) {
		text := line.Text()
		if len(rows) > 0 {
			text = "  " + text
		}
		rows = append(rows, row{text: text, style: cell.Coloured(view.Yellow), comment: c})
	}
	return rows
}

func number(l *diffview.Line, side string) int {
	if side == agency.SideOld {
		return l.Old
	}
	return l.New
}

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case p.failed != "":
		return page.Fill(cell.Wrap(cell.Plain, p.failed, 2, width, 5), width, height)
	case !p.loaded:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  reading …")}, width, height)
	case len(p.list.List) == 0:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  nothing has changed")}, width, height)
	}
	if width >= listBeside {
		files, lines := p.files(listColumns, height, true), p.lines(width-listColumns-1, height)
		for i := range lines {
			lines[i] = append(append(files[i], cell.Of(cell.Dim, "│")...), lines[i]...)
		}
		return lines
	}
	above := min(len(p.list.List), max(height/4, 1))
	lines := append(p.files(width, above, false), cell.Of(cell.Dim, strings.Repeat("─", width)))
	return append(lines, p.lines(width, height-len(lines))...)[:height]
}

// lines returns the visible rows of the file.
func (p *Page) lines(width, height int) []cell.Line {
	f := &p.file
	f.height, f.widest = height, 0
	f.arrange(width, p.comments)
	f.top = page.Scroll(f.top, f.cursor, height, len(f.rows))
	lines := make([]cell.Line, 0, height)
	for i := f.top; i < len(f.rows) && len(lines) < height; i++ {
		line := f.draw(&f.rows[i], width)
		if i == f.cursor {
			line = line.All(cell.Reversed)
		}
		lines = append(lines, line)
	}
	return page.Fill(lines, width, height)
}

func (f *file) draw(r *row, width int) cell.Line {
	switch {
	case r.old == nil && r.new == nil:
		return cell.Of(cell.With(r.style, "b"), " "+expand(r.text)).Fit(width)
	case !f.two:
		l := r.new
		if l == nil {
			l = r.old
		}
		return f.line(l, fmt.Sprintf("%5s %5s ", count(l.Old), count(l.New)), width)
	default:
		half := (width - 1) / 2
		left, right := cell.Of(cell.Plain, ""), cell.Of(cell.Plain, "")
		if r.old != nil {
			left = f.line(r.old, fmt.Sprintf("%5s ", count(r.old.Old)), half)
		}
		if r.new != nil {
			right = f.line(r.new, fmt.Sprintf("%5s ", count(r.new.New)), width-half-1)
		}
		return append(append(left.Fit(half), cell.Of(cell.Dim, "│")...), right.Fit(width-half-1)...)
	}
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// line draws a line of code: what came and went in its colour, with the words of the language.
func (f *file) line(l *diffview.Line, numbers string, width int) cell.Line {
	base := cell.Plain
	switch l.Kind {
	case diffview.Added:
		base = cell.Coloured(view.Green)
	case diffview.Deleted:
		base = cell.Coloured(view.Red)
	case diffview.Note:
		return cell.Of(cell.Dim, strings.Repeat(" ", len(numbers))+l.Text).Fit(width)
	case diffview.Same:
	}
	code := cell.Line{}
	for _, token := range diffview.Lex(f.path, expand(term.SafeText(l.Text))) {
		style := base
		switch token.Sort {
		case diffview.Keyword:
			style = cell.With(base, "b")
		case diffview.String:
			if l.Kind == diffview.Same {
				style = cell.Coloured(view.Yellow)
			}
		case diffview.Number:
			if l.Kind == diffview.Same {
				style = cell.Coloured(view.Cyan)
			}
		case diffview.Comment:
			style = cell.With(base, "d")
		case diffview.Text:
		}
		code = code.Add(style, token.Text)
	}
	head := cell.Of(cell.Dim, numbers).Add(cell.With(base, "b"), string(l.Kind))
	f.room, f.widest = max(width-head.Width(), 1), max(f.widest, code.Width())
	return append(head, code.Skip(f.left).Fit(f.room)...).Fit(width)
}

// expand replaces tabs. A line is cut off far beyond any screen: one of a megabyte is not drawn.
func expand(text string) string {
	if len(text) > 2000 {
		text = strings.ToValidUTF8(text[:2000], "")
	}
	return strings.ReplaceAll(text, "\t", "    ")
}

// Typing implements page.Page.
func (p *Page) Typing(width int) cell.Line {
	switch p.typing {
	case comment:
		return p.field.Draw(fmt.Sprintf("comment on %s:%d> ", tail(p.about.path, 30), p.about.line), width)
	case search:
		return p.field.Draw("find> ", width)
	case nothing:
	}
	return nil
}
