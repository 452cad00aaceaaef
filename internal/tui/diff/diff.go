// Package diff is the screen on which the user reads what a run changed, a file at a time, comments on its
// lines and sends the comments to the agent.
package diff

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/diffview"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
)

// How many lines around each change are shown at first, and at most.
const (
	usualContext = 3
	mostContext  = 10000
)

// Page shows what one run changed.
type Page struct {
	desk *page.Desk
	run  api.Run

	base     string
	tight    bool // lines that differ in white space only count as the same
	context  int  // lines around each change
	list     api.DiffRunResponse
	loaded   bool
	failed   string
	comments []agency.LineComment
	unread   error // why the comments could not be read the last time

	at   int // the chosen file
	tree tree
	file file
	turn int // counts the readings of files: only the answer to the newest counts

	typing typing
	field  field.Field
	about  draft
	sought string // the text that was searched for last
}

// typing is what the text on the last row is for.
type typing int

const (
	nothing typing = iota
	comment
	search
)

// New returns the page of a run.
func New(desk *page.Desk, run *api.Run) *Page {
	return &Page{desk: desk, run: *run, base: api.DiffFromBase, context: usualContext}
}

type (
	listMsg struct {
		run  agency.RunID
		base string
		resp api.DiffRunResponse
		err  error
	}
	fileMsg struct {
		turn      int
		path      string
		patch     string
		truncated bool
		err       error
	}
	commentsMsg struct {
		run      agency.RunID
		comments []agency.LineComment
		err      error
	}
)

// Title implements page.Page.
func (p *Page) Title() string {
	title := "diff of " + p.run.Ref()
	if p.loaded {
		done, added, deleted := 0, 0, 0
		for i := range p.list.List {
			f := &p.list.List[i]
			added, deleted = added+f.Added, deleted+f.Deleted
			if f.Reviewed {
				done++
			}
		}
		title += fmt.Sprintf(" +%d -%d  %d/%d reviewed", added, deleted, done, len(p.list.List))
	}
	switch p.base {
	case api.DiffFromTarget:
		title += "  to target"
	case api.DiffFromLastTurn:
		title += "  last turn"
	}
	if p.tight {
		title += "  spaces off"
	}
	if p.context != usualContext {
		title += fmt.Sprintf("  context %d", p.context)
	}
	return title
}

// Open implements page.Page: it reads the list of files, and the comments on them.
func (p *Page) Open() tea.Cmd {
	d, ctx, run, base := &p.desk.Daemon, p.desk.Ctx, p.run.ID, p.base
	list := func() tea.Msg {
		resp, err := d.DiffRun(ctx, api.DiffRunRequest{Run: string(run), List: true, Base: base})
		return listMsg{run, base, resp, err}
	}
	return tea.Batch(list, p.readComments())
}

// Changed implements page.Page: the diff stays as it is while the user reads it, until R.
func (p *Page) Changed() tea.Cmd { return nil }

// Update implements page.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case listMsg:
		if msg.run == p.run.ID && msg.base == p.base {
			return p.listed(&msg)
		}
	case fileMsg:
		if msg.turn == p.turn {
			p.opened(&msg)
		}
	case commentsMsg:
		if msg.run != p.run.ID {
			return nil
		}
		if p.unread = msg.err; msg.err == nil { // else the diff is shown with those that were read before
			p.comments = msg.comments
			p.file.arranged = false
		}
	case markedMsg:
		if msg.run == p.run.ID && msg.err != nil {
			return tea.Batch(p.Open(), p.desk.Fail(msg.err)) // to show what the daemon has kept
		}
	case editMsg:
		return p.open(&msg)
	case editedMsg:
		if msg.err != nil {
			return p.desk.Fail(msg.err)
		}
		return p.Open() // the user may have changed the file
	case page.Acted: // an action on comments may have been done in part even if it failed
		return p.readComments()
	}
	return nil
}

// listed shows the list of files that has come. The cursor stays on its file.
func (p *Page) listed(msg *listMsg) tea.Cmd {
	if msg.err != nil {
		p.failed = agency.AsError(msg.err).Message
		return p.desk.Fail(msg.err)
	}
	path := ""
	if f := p.chosen(); f != nil {
		path = f.Path
	}
	p.list, p.loaded, p.failed, p.at = msg.resp, true, "", 0
	for i := range p.list.List {
		if p.list.List[i].Path == path {
			p.at = i
		}
	}
	top := p.tree.top
	p.tree = treeOf(msg.resp.List)
	p.tree.top = top
	return p.read()
}

// chosen returns the chosen file; nil if there is none.
func (p *Page) chosen() *agency.FileDiff {
	if p.at >= len(p.list.List) {
		return nil
	}
	return &p.list.List[p.at]
}

// read reads the chosen file. Until it comes, the page shows what it has.
func (p *Page) read() tea.Cmd {
	f := p.chosen()
	if f == nil {
		return nil
	}
	p.turn++
	d, ctx, turn, path := &p.desk.Daemon, p.desk.Ctx, p.turn, f.Path
	req := api.DiffRunRequest{Run: string(p.run.ID), File: path, Base: p.base, MaxBytes: page.FileBytes, IgnoreSpace: p.tight, Context: p.context}
	return func() tea.Msg {
		resp, err := d.DiffRun(ctx, req)
		return fileMsg{turn, path, resp.Patch, resp.Truncated, err}
	}
}

// opened shows the file that has come. In the same file, the cursor stays in its place.
func (p *Page) opened(msg *fileMsg) {
	was := &p.file
	f := file{path: msg.path, truncated: msg.truncated, look: was.look, texts: map[*diffview.Line]*text{}}
	if msg.path == was.path {
		f.cursor, f.top, f.left, f.near = was.cursor, was.top, was.left, was.nearby()
	}
	p.file = f
	if msg.err != nil {
		p.file.notes = []string{agency.AsError(msg.err).Message, "R reads it again"}
		return
	}
	p.file.hunks, p.file.notes = diffview.Parse(msg.patch)
}

// move returns the action of a key that moves the cursor by rows.
func (p *Page) move(by int) func(string) tea.Cmd {
	return page.Do(func() { p.file.move(by) })
}

// step returns the action of a key that goes to another file.
func (p *Page) step(by int) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		to := p.at + by
		if to < 0 || to >= len(p.list.List) {
			return nil
		}
		p.at = to
		return p.read()
	}
}

// review marks the chosen file as reviewed and goes to the next one that is not, or takes the mark back.
func (p *Page) review() tea.Cmd {
	f := p.chosen()
	if f == nil {
		return nil
	}
	f.Reviewed = !f.Reviewed
	marked := p.mark(f)
	if !f.Reviewed {
		return marked
	}
	for i := range p.list.List {
		at := (p.at + 1 + i) % len(p.list.List)
		if !p.list.List[at].Reviewed {
			p.at = at
			return tea.Batch(marked, p.read())
		}
	}
	return tea.Batch(p.desk.Say("all files are reviewed"), marked)
}

// markedMsg is the end of mark.
type markedMsg struct {
	run agency.RunID
	err error
}

// mark has the daemon keep whether a file is reviewed, with the content that the list has.
func (p *Page) mark(f *agency.FileDiff) tea.Cmd {
	d, ctx, run := &p.desk.Daemon, p.desk.Ctx, p.run.ID
	req := api.MarkReviewedRequest{Run: string(run), Files: []agency.ReviewedFile{{Path: f.Path, Object: f.Object}}, Undo: !f.Reviewed}
	return func() tea.Msg {
		_, err := d.MarkReviewed(ctx, req)
		return markedMsg{run, err}
	}
}

// rebase compares the work of the run with the next base.
func (p *Page) rebase() tea.Cmd {
	p.base = page.NextDiffBase(p.base)
	p.loaded, p.list, p.file = false, api.DiffRunResponse{}, file{look: p.file.look}
	return p.Open()
}

// tighten leaves out the lines that differ in white space only, or shows them again.
func (p *Page) tighten() tea.Cmd {
	p.tight = !p.tight
	return p.read()
}

// around sets how many lines around each change are shown.
func (p *Page) around(context int) tea.Cmd {
	context = min(max(context, 1), mostContext)
	if context == p.context {
		return nil
	}
	p.context = context
	return p.read()
}

// sideways returns the action of a key that moves the code of long lines.
func (p *Page) sideways(by int) func(string) tea.Cmd {
	return page.Run(func() tea.Cmd {
		switch {
		case p.file.look.wrapped:
			return p.desk.Say("long lines are wrapped")
		case !p.file.sideways(by) && by > 0:
			return p.desk.Say("no line that is shown has more on the right")
		}
		return nil
	})
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In a diff"
	return []page.Binding{
		{Name: "down", Keys: []string{"j", "down"}, Shown: "j, down", Does: "the next line", Group: group, Act: p.move(1)},
		{Name: "up", Keys: []string{"k", "up"}, Shown: "k, up", Does: "the line before", Group: group, Act: p.move(-1)},
		{Name: "half-down", Keys: []string{"ctrl+d", "pgdown", "J"}, Shown: "ctrl-d, J", Does: "half a page down", Group: group, Act: page.Do(func() { p.file.move(max(p.file.height/2, 1)) })},
		{Name: "half-up", Keys: []string{"ctrl+u", "pgup", "K"}, Shown: "ctrl-u, K", Does: "half a page up", Group: group, Act: page.Do(func() { p.file.move(-max(p.file.height/2, 1)) })},
		{Name: "first", Keys: []string{"g", "home"}, Shown: "g", Does: "the first line", Group: group, Act: page.Do(func() { p.file.cursor = spot{} })},
		{Name: "last", Keys: []string{"G", "end"}, Shown: "G", Does: "the last line", Group: group, Act: page.Do(func() { p.file.cursor = p.file.end() })},
		{Name: "next-hunk", Keys: []string{"n"}, Shown: "n", Does: "the next hunk", Short: "hunk", Group: group, Act: page.Do(func() { p.file.hunk(1) })},
		{Name: "previous-hunk", Keys: []string{"p"}, Shown: "p", Does: "the hunk before", Group: group, Act: page.Do(func() { p.file.hunk(-1) })},
		{Name: "next-file", Keys: []string{"]", "tab", "right"}, Shown: "], tab", Does: "the next file", Short: "file", Group: group, Act: p.step(1)},
		{Name: "previous-file", Keys: []string{"[", "shift+tab", "left"}, Shown: "[", Does: "the file before", Group: group, Act: p.step(-1)},
		{Name: "scroll-right", Keys: []string{"L", "shift+right"}, Shown: "L", Does: "the code further right, by half of its columns", Group: group, Act: p.sideways(1)},
		{Name: "scroll-left", Keys: []string{"H", "shift+left"}, Shown: "H", Does: "the code further left", Group: group, Act: p.sideways(-1)},
		{Name: "wrap", Keys: []string{"W"}, Shown: "W", Does: "wrap long lines, or cut them off again", Group: group, Act: page.Do(func() { p.file.wrap() })},
		{Name: "more-context", Keys: []string{"}"}, Shown: "}", Does: "twice as many lines around each change", Group: group, Act: page.Run(func() tea.Cmd { return p.around(p.context * 2) })},
		{Name: "less-context", Keys: []string{"{"}, Shown: "{", Does: "half as many lines around each change", Group: group, Act: page.Run(func() tea.Cmd { return p.around(p.context / 2) })},
		{Name: "reviewed", Keys: []string{"x"}, Shown: "x", Does: "the file is reviewed, until it changes; to the next one", Short: "reviewed", Group: group, Act: page.Run(p.review)},
		{Name: "comment", Keys: []string{"c"}, Shown: "c", Does: "comment on the line, or edit the comment that waits there", Short: "comment", Group: group, Act: page.Run(p.startComment)},
		{Name: "discard-comment", Keys: []string{"D"}, Shown: "D", Does: "discard the comment at the cursor, after a y", Group: group, Act: page.Run(p.discard)},
		{Name: "send-comments", Keys: []string{"S"}, Shown: "S", Does: "send the comments to the agent, after a y", Short: "send", Group: group, Act: page.Run(p.send)},
		{Name: "columns", Keys: []string{"|"}, Shown: "|", Does: "one column or two", Group: group, Act: page.Do(func() { p.file.look.unified, p.file.arranged = !p.file.look.unified, false })},
		{Name: "whitespace", Keys: []string{"w"}, Shown: "w", Does: "leave out what differs in white space only, or show it again", Group: group, Act: page.Run(p.tighten)},
		{Name: "find", Keys: []string{"/"}, Shown: "/", Does: "find a text in the file; with no text, the next place", Group: group, Act: page.Do(p.startSearch)},
		{Name: "edit", Keys: []string{"e"}, Shown: "e", Does: "open the file in $EDITOR, at the line", Group: group, Act: page.Run(p.edit)},
		{Name: "copy", Keys: []string{"y"}, Shown: "y", Does: "copy the line to the clipboard of the terminal", Group: group, Act: page.Run(p.copy)},
		{Name: "base", Keys: []string{"b"}, Shown: "b", Does: "compare with where it began, with its last turn, or with where it left its target", Group: group, Act: page.Run(p.rebase)},
		{Name: "reload", Keys: []string{"R"}, Shown: "R", Does: "read it again", Group: group, Act: page.Run(p.Open)},
	}
}

// Type implements page.Page.
func (p *Page) Type(press tea.KeyPressMsg) tea.Cmd {
	switch press.String() {
	case "esc":
		p.typing = nothing
	case "enter":
		typed, text := p.typing, strings.TrimSpace(p.field.Text())
		p.typing = nothing
		switch {
		case typed == search:
			return p.find(text)
		case text != "":
			return p.comment(text)
		}
	default:
		p.field.Press(press)
	}
	return nil
}

// Paste implements page.Page.
func (p *Page) Paste(text string) { p.field.Insert(text) }
