package diff

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"agency"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// treeRow is a row of the tree of files: a file, or a folder when file is -1.
type treeRow struct {
	file  int
	name  string
	depth int
}

// tree returns the files by their folders. A folder with one thing in it is on the row of that.
func tree(files []agency.FileDiff) []treeRow {
	rows := []treeRow{}
	var walk func(from, to, cut, depth int)
	walk = func(from, to, cut, depth int) {
		for from < to {
			name := files[from].Path[cut:]
			folder, end := common(files, from, to, cut)
			if folder == "" || end == from+1 {
				rows = append(rows, treeRow{from, name, depth})
				from++
				continue
			}
			rows = append(rows, treeRow{-1, folder, depth})
			walk(from, end, cut+len(folder), depth+1)
			from = end
		}
	}
	walk(0, len(files), 0, 0)
	return rows
}

// common returns the folder of a file, as the rest of its path behind cut says it, and the end of the
// files behind it that are in it too: as deep as all of these are.
func common(files []agency.FileDiff, from, to, cut int) (folder string, end int) {
	at := strings.IndexByte(files[from].Path[cut:], '/')
	if at < 0 {
		return "", from + 1
	}
	prefix := files[from].Path[:cut+at+1]
	for end = from + 1; end < to && strings.HasPrefix(files[end].Path, prefix); {
		end++
	}
	for {
		at := strings.IndexByte(files[from].Path[len(prefix):], '/')
		if at < 0 {
			break
		}
		deeper := files[from].Path[:len(prefix)+at+1]
		if slices.ContainsFunc(files[from:end], func(f agency.FileDiff) bool { return !strings.HasPrefix(f.Path, deeper) }) {
			break
		}
		prefix = deeper
	}
	return prefix[cut:], end
}

// flat returns the files without their folders.
func flat(files []agency.FileDiff) []treeRow {
	rows := make([]treeRow, len(files))
	for i := range files {
		rows[i] = treeRow{i, files[i].Path, 0}
	}
	return rows
}

// files returns the visible rows of the list of files, with the chosen one among them: a tree beside
// the lines, and a flat list in the few rows above them.
func (p *Page) files(width, height int, asTree bool) []cell.Line {
	rows := p.flat
	if asTree {
		rows = p.tree
	}
	at := 0
	for i := range rows {
		if rows[i].file == p.at {
			at = i
		}
	}
	lines := make([]cell.Line, 0, height)
	for i := page.Scroll(0, at, height, len(rows)); i < len(rows) && len(lines) < height; i++ {
		indent := strings.Repeat(" ", min(2*rows[i].depth, width/2))
		if rows[i].file < 0 {
			lines = append(lines, cell.Of(cell.Dim, "  "+indent+rows[i].name).Fit(width))
			continue
		}
		lines = append(lines, p.fileRow(&rows[i], indent, width))
	}
	if left := p.list.LeftOut.Files; left > 0 && len(lines) < height {
		lines = append(lines, cell.Of(cell.Dim, fmt.Sprintf("  and %d too large to show", left)).Fit(width))
	}
	return page.Fill(lines, width, height)
}

// fileRow returns the row of a file: whether it was reviewed, what became of it, and how much.
func (p *Page) fileRow(r *treeRow, indent string, width int) cell.Line {
	f := &p.list.List[r.file]
	mark := " "
	if p.seen[key(f)] {
		mark = "✓"
	}
	counts := fmt.Sprintf(" +%d -%d", f.Added, f.Deleted)
	if f.Binary {
		counts = " binary"
	}
	name := r.name
	switch {
	case f.From == "":
	case path.Dir(f.From) == path.Dir(f.Path):
		name = strings.TrimSuffix(name, path.Base(name)) + path.Base(f.From) + " → " + path.Base(name)
	default:
		name = f.From + " → " + name
	}
	lead := " "
	if r.file == p.at {
		lead = ">"
	}
	room := max(width-5-len(counts)-len(indent), 4)
	if w := term.Width(name); w > room { // the end of a path says most
		name = "…" + tail(name, room-1)
	}
	line := cell.Of(cell.Bold, lead).Add(cell.Coloured(view.Green), mark).Add(cell.Plain, indent).Add(cell.Coloured(status(f)), f.Status+" ").Add(cell.Plain, name).
		Fit(width-len(counts)).Add(cell.Dim, counts)
	if r.file == p.at {
		line = line.All(cell.With(cell.Reversed, "b"))
	}
	return line.Fit(width)
}

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

// tail returns the end of a text that is at most so wide.
func tail(text string, width int) string {
	runes := []rune(text)
	for len(runes) > 0 && term.Width(string(runes)) > width {
		runes = runes[1:]
	}
	return string(runes)
}
