package diff

import (
	"fmt"
	"path"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// tree is the list of files in their folders.
type tree struct {
	rows []node
	at   []int // the row of each file
	top  int   // the first visible row
}

// node is a row of the tree: a file, or a folder.
type node struct {
	depth  int
	file   int    // the index of the file; -1 for a folder
	name   string // of a folder, without the folder that it is in
	folder string // the path of the folder, or of the folder that the file is in
}

// treeOf returns the tree of files, in their order. A folder with nothing but one folder in it shares the row
// of that folder.
func treeOf(files []agency.FileDiff) tree {
	t := tree{at: make([]int, len(files))}
	t.grow(files, 0, len(files), node{depth: -1})
	return t
}

// grow adds the files with the indexes from and before to, which are all in the folder in.
func (t *tree) grow(files []agency.FileDiff, from, to int, in node) {
	for i := from; i < to; {
		dir, _ := path.Split(files[i].Path)
		first, _, deeper := strings.Cut(dir[len(in.folder):], "/")
		if !deeper {
			t.at[i] = len(t.rows)
			t.rows = append(t.rows, node{depth: in.depth + 1, file: i, folder: in.folder})
			i++
			continue
		}
		folder, end := in.folder+first+"/", i+1
		for ; end < to && strings.HasPrefix(files[end].Path, folder); end++ {
			for !strings.HasPrefix(files[end].Path, dir) {
				dir = dir[:strings.LastIndexByte(dir[:len(dir)-1], '/')+1]
			}
		}
		n := node{depth: in.depth + 1, file: -1, name: dir[len(in.folder):], folder: dir}
		t.rows = append(t.rows, n)
		t.grow(files, i, end, n)
		i = end
	}
}

// files returns the rows of the files around the chosen one. Above the lines there are few rows, and folders
// would take the place of files: there folders is false.
func (p *Page) files(width, height int, folders bool) []cell.Line {
	room, rest := height, p.rest()
	if rest != "" && height > 1 {
		room--
	}
	draw := p.flat
	if folders {
		draw = p.folders
	}
	lines := draw(width, room)
	if rest != "" {
		lines = append(lines, cell.Of(cell.Dim, rest))
	}
	return page.Fill(lines, width, height)
}

// folders returns the visible rows of the tree: the chosen file is one of them and, if possible, the folders
// right above it.
func (p *Page) folders(width, height int) []cell.Line {
	t := &p.tree
	at := t.at[p.at]
	above := at
	for above > 0 && t.rows[above-1].file < 0 {
		above--
	}
	t.top = page.Scroll(t.top, above, height, len(t.rows))
	t.top = page.Scroll(t.top, at, height, len(t.rows))
	lines := make([]cell.Line, 0, height+1)
	for i := t.top; i < len(t.rows) && len(lines) < height; i++ {
		n := &t.rows[i]
		indent := strings.Repeat(" ", min(2*n.depth, width/3))
		if n.file < 0 {
			lines = append(lines, cell.Of(cell.Dim, "    "+indent+fitEnd(n.name, width-4-len(indent))).Fit(width))
			continue
		}
		f := &p.list.List[n.file]
		name := path.Base(f.Path)
		if f.From != "" {
			name = strings.TrimPrefix(f.From, n.folder) + " → " + name
		}
		lines = append(lines, p.fileRow(n.file, indent, name, width))
	}
	return lines
}

// flat returns the visible rows of the files with their whole paths.
func (p *Page) flat(width, height int) []cell.Line {
	lines := make([]cell.Line, 0, height+1)
	for i := page.Scroll(0, p.at, height, len(p.list.List)); i < len(p.list.List) && len(lines) < height; i++ {
		f := &p.list.List[i]
		name := f.Path
		if f.From != "" {
			name = f.From + " → " + f.Path
		}
		lines = append(lines, p.fileRow(i, "", name, width))
	}
	return lines
}

// rest returns the text of the last row: how many files the list leaves out; empty if none.
func (p *Page) rest() string {
	switch left := p.list.LeftOut.Files; {
	case left > 0:
		return fmt.Sprintf("  and %d too large to show", left)
	case p.list.Truncated:
		return "  and more, which are not shown"
	default:
		return ""
	}
}

// fileRow draws a file: the cursor, whether the file is reviewed, its status, its name, and how many lines
// came and went.
func (p *Page) fileRow(i int, indent, name string, width int) cell.Line {
	f := &p.list.List[i]
	mark, lead := " ", " "
	if f.Reviewed {
		mark = "✓"
	}
	if i == p.at {
		lead = ">"
	}
	counts := fmt.Sprintf(" +%d -%d", f.Added, f.Deleted)
	if f.Binary {
		counts = " binary"
	}
	line := cell.Of(cell.Bold, lead).Add(cell.Coloured(view.Green), mark).Add(cell.Coloured(status(f)), f.Status+" ").
		Add(cell.Plain, indent+fitEnd(name, max(width-4-len(indent)-len(counts), 4))).
		Fit(width-len(counts)).Add(cell.Dim, counts)
	if i == p.at {
		line = line.All(cell.With(cell.Reversed, "b"))
	}
	return line.Fit(width)
}

// status returns the colour of the status of a file.
func status(f *agency.FileDiff) view.Colour {
	switch f.Status {
	case "A":
		return view.Green
	case "D":
		return view.Red
	case "R", "C":
		return view.Cyan
	default:
		return view.Yellow
	}
}

// fitEnd returns a path that fits a width. It cuts off the beginning, because the end tells more.
func fitEnd(name string, width int) string {
	name = term.SafeText(name)
	cells := term.Width(name)
	if cells <= width {
		return name
	}
	return ansi.TruncateLeft(name, cells-width+1, "…")
}
