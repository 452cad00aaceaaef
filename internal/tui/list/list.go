// Package list is the list of runs, in groups and by how much they need a user. It draws only the rows
// that are visible, and its cursor stays on its run whatever happens around it.
package list

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// List is a list of runs with a cursor and marks.
type List struct {
	runs   []*api.Run // in the order of by, also those that the filter hides
	by     By
	filter string
	rows   []row        // the runs that the filter shows, below the titles of their groups
	at     int          // the row of the cursor; -1 when no run is shown
	chosen agency.RunID // the run at the cursor
	marked map[agency.RunID]bool
	top    int  // the first visible row
	height int  // how many rows are visible
	repos  bool // the runs are of more than one repository
	widest int  // the width of the widest name
}

// row is a run, or the title of a group when run is -1.
type row struct {
	run   int
	key   string // of the group
	title string
	count int // how many runs the group shows
	needs int // how many of them need a user
}

// unseen is the height of a list before it is drawn: all rows count as visible.
const unseen = 1 << 20

// New returns an empty list.
func New() *List { return &List{at: -1, marked: map[agency.RunID]bool{}, height: unseen} }

// Set replaces the runs. The cursor stays on its run or, when that is gone, goes to the run in its place.
func (l *List) Set(runs []api.Run) {
	all := make([]*api.Run, len(runs))
	for i := range runs {
		all[i] = &runs[i]
	}
	l.set(all)
}

// Update replaces the runs with these ids by runs. A run with one of the ids that is not in runs is gone.
func (l *List) Update(ids []agency.RunID, runs []api.Run) {
	changed := make(map[agency.RunID]*api.Run, len(ids))
	for _, id := range ids {
		changed[id] = nil
	}
	for i := range runs {
		changed[runs[i].ID] = &runs[i]
	}
	all := make([]*api.Run, 0, len(l.runs)+len(runs))
	for _, r := range l.runs {
		now, is := changed[r.ID]
		if !is {
			now = r
		}
		delete(changed, r.ID)
		if now != nil {
			all = append(all, now)
		}
	}
	for i := range runs {
		if changed[runs[i].ID] != nil {
			all = append(all, &runs[i])
		}
	}
	l.set(all)
}

// set replaces the runs, and drops the marks of those that are gone.
func (l *List) set(runs []*api.Run) {
	l.runs = runs
	there := map[agency.RunID]bool{}
	l.repos, l.widest = false, leastName
	for i := range runs {
		l.widest = max(l.widest, term.Width(runs[i].Ref()))
		there[runs[i].ID] = true
		l.repos = l.repos || runs[i].Repo != runs[0].Repo
	}
	for id := range l.marked {
		if !there[id] {
			delete(l.marked, id)
		}
	}
	l.sort()
}

// sort sorts the runs and makes the rows.
func (l *List) sort() {
	slices.SortStableFunc(l.runs, l.by.compare)
	l.arrange()
}

// Group groups the runs by another criterion.
func (l *List) Group(by By) {
	l.by = by
	l.sort()
}

// Grouped returns what the runs are grouped by.
func (l *List) Grouped() By { return l.by }

// Filter shows only the runs that match.
func (l *List) Filter(filter string) {
	l.filter = filter
	l.arrange()
}

// Filtered returns the present filter.
func (l *List) Filtered() string { return l.filter }

// arrange makes the rows. The row of the cursor stays where it is on the screen, unless the list shows its
// first row: then the user sees new rows at the top.
func (l *List) arrange() {
	was, line := l.at, l.at-l.top
	l.rows, l.at = l.rows[:0], -1
	title := -1
	for i := range l.runs {
		if l.filter != "" && !Matches(l.filter, l.runs[i]) {
			continue
		}
		if key := l.by.key(l.runs[i]); title < 0 || l.rows[title].key != key {
			title = len(l.rows)
			l.rows = append(l.rows, row{run: -1, key: key, title: l.by.title(l.runs[i])})
		}
		l.rows[title].count++
		if wants(l.runs[i]) {
			l.rows[title].needs++
		}
		if l.runs[i].ID == l.chosen {
			l.at = len(l.rows)
		}
		l.rows = append(l.rows, row{run: i})
	}
	if l.at < 0 {
		l.choose(l.nearest(was))
	} else if l.top > 0 {
		l.top = l.at - line
	}
	l.scroll()
}

// nearest returns the row of a run at or near a row; -1 when there is none.
func (l *List) nearest(at int) int {
	at = min(max(at, 0), len(l.rows)-1)
	if at >= 0 && l.rows[at].run < 0 {
		at++ // every title has a run below it
	}
	return at
}

// choose moves the cursor to a row.
func (l *List) choose(at int) {
	l.at, l.chosen = at, ""
	if at >= 0 {
		l.chosen = l.runs[l.rows[at].run].ID
	}
	l.scroll()
}

// scroll keeps the cursor visible, and the title above the first run.
func (l *List) scroll() {
	if l.at >= 0 {
		first := l.at
		if l.at > 0 && l.rows[l.at-1].run < 0 {
			first--
		}
		l.top = min(l.top, first)
		l.top = max(l.top, l.at-l.height+1)
	}
	l.top = max(min(l.top, len(l.rows)-l.height), 0)
}

// Move moves the cursor by a number of runs.
func (l *List) Move(by int) {
	at := l.at
	for step := 1; by != 0 && at >= 0; by -= step {
		if by < 0 {
			step = -1
		}
		next := at + step
		if next >= 0 && next < len(l.rows) && l.rows[next].run < 0 {
			next += step
		}
		if next < 0 || next >= len(l.rows) {
			break
		}
		at = next
	}
	l.choose(at)
}

// Page moves the cursor by halves of the visible rows.
func (l *List) Page(by int) { l.Move(by * max(l.height/2, 1)) }

// End moves the cursor to the first run, or to the last one.
func (l *List) End(last bool) {
	if last {
		l.Move(len(l.rows))
	} else {
		l.Move(-len(l.rows))
	}
}

// wants reports whether a run needs the user and is not snoozed.
func wants(r *api.Run) bool { return r.NeedsYou() && r.SnoozedUntil == nil }

// Next moves the cursor to the next run that needs the user, around the end, or with -1 to the one before.
// It reports whether there is one that the filter shows.
func (l *List) Next(step int) bool {
	for i := 1; i <= len(l.rows); i++ {
		at := ((l.at+i*step)%len(l.rows) + len(l.rows)) % len(l.rows)
		if run := l.rows[at].run; run >= 0 && wants(l.runs[run]) {
			l.choose(at)
			return true
		}
	}
	return false
}

// Needs returns how many runs need the user, how many of them the filter hides, and the place of the run at
// the cursor among the others, from 1. The place is 0 when that run does not need the user.
func (l *List) Needs() (all, hidden, place int) {
	shown := 0
	for _, r := range l.runs {
		if wants(r) {
			all++
		}
	}
	for i := range l.rows {
		if run := l.rows[i].run; run >= 0 && wants(l.runs[run]) {
			if shown++; i == l.at {
				place = shown
			}
		}
	}
	return all, all - shown, place
}

// Go moves the cursor to a run, and reports whether it is shown.
func (l *List) Go(id agency.RunID) bool {
	i := slices.IndexFunc(l.rows, func(r row) bool { return r.run >= 0 && l.runs[r.run].ID == id })
	if i >= 0 {
		l.choose(i)
	}
	return i >= 0
}

// Names returns the names of the runs by their ids.
func (l *List) Names() map[string]string {
	names := make(map[string]string, len(l.runs))
	for i := range l.runs {
		names[string(l.runs[i].ID)] = l.runs[i].Ref()
	}
	return names
}

// Repos returns the repositories of the runs, by the alphabet.
func (l *List) Repos() []string {
	repos := map[string]bool{}
	for i := range l.runs {
		repos[l.runs[i].Repo] = true
	}
	return slices.Sorted(maps.Keys(repos))
}

// Find returns a run, also one that the filter hides; nil when there is none.
func (l *List) Find(id agency.RunID) *api.Run {
	i := slices.IndexFunc(l.runs, func(r *api.Run) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return l.runs[i]
}

// Click moves the cursor to the run at a visible row, and reports whether there is one.
func (l *List) Click(line int) bool {
	at := l.top + line
	if line < 0 || line >= l.height || at >= len(l.rows) || l.rows[at].run < 0 {
		return false
	}
	l.choose(at)
	return true
}

// Chosen returns the run at the cursor; nil when there is none.
func (l *List) Chosen() *api.Run {
	if l.at < 0 {
		return nil
	}
	return l.runs[l.rows[l.at].run]
}

// Mark marks the run at the cursor or takes its mark away, and moves the cursor to the next run.
func (l *List) Mark() {
	if l.at < 0 {
		return
	}
	if l.marked[l.chosen] {
		delete(l.marked, l.chosen)
	} else {
		l.marked[l.chosen] = true
	}
	l.Move(1)
}

// MarkAll marks all runs that the filter shows or, when they are marked already, none of them.
func (l *List) MarkAll() {
	marked, hidden := l.Marked()
	all := marked-hidden == l.shown()
	for i := range l.rows {
		if l.rows[i].run < 0 {
			continue
		}
		if id := l.runs[l.rows[i].run].ID; all {
			delete(l.marked, id)
		} else {
			l.marked[id] = true
		}
	}
}

// shown returns how many runs the filter shows.
func (l *List) shown() int {
	shown := 0
	for i := range l.rows {
		if l.rows[i].run >= 0 {
			shown++
		}
	}
	return shown
}

// Unmark takes the marks of runs away. Without runs it takes all marks away.
func (l *List) Unmark(runs ...agency.RunID) {
	if len(runs) == 0 {
		clear(l.marked)
	}
	for _, id := range runs {
		delete(l.marked, id)
	}
}

// Targets returns the marked runs that the filter shows, or the one at the cursor when none is marked.
func (l *List) Targets() []api.Run {
	if len(l.marked) == 0 {
		if r := l.Chosen(); r != nil {
			return []api.Run{*r}
		}
		return nil
	}
	targets := []api.Run{}
	for i := range l.rows {
		if run := l.rows[i].run; run >= 0 && l.marked[l.runs[run].ID] {
			targets = append(targets, *l.runs[run])
		}
	}
	return targets
}

// Marked returns how many runs are marked, and how many of them the filter hides.
func (l *List) Marked() (marked, hidden int) {
	if len(l.marked) == 0 {
		return 0, 0
	}
	return len(l.marked), len(l.marked) - len(l.Targets())
}

// Len returns how many runs there are, without the filter.
func (l *List) Len() int { return len(l.runs) }

// Counts returns how many runs each group has, without the filter.
func (l *List) Counts() map[view.Group]int {
	counts := map[view.Group]int{}
	for i := range l.runs {
		counts[view.GroupOf(l.runs[i])]++
	}
	return counts
}

// Draw returns the visible rows. now is the time for ages.
func (l *List) Draw(width, height int, now time.Time) []cell.Line {
	l.height = max(height, 1)
	l.scroll()
	lines := make([]cell.Line, 0, height)
	for i := l.top; i < len(l.rows) && len(lines) < height; i++ {
		if l.rows[i].run < 0 {
			lines = append(lines, l.title(&l.rows[i], width))
			continue
		}
		lines = append(lines, l.run(i, width, now))
	}
	if below := len(l.rows) - l.top - height; below > 0 && height > 3 {
		lines[height-1] = cell.Of(cell.Dim, fmt.Sprintf("   … %d more", below+1)).Fit(width)
		if l.at == l.top+height-1 { // the cursor is never hidden
			lines[height-1] = l.run(l.at, width, now)
		}
	}
	for len(lines) < height {
		lines = append(lines, cell.Of(cell.Plain, "").Fit(width))
	}
	return lines
}

// title returns the row with the title of a group.
func (l *List) title(r *row, width int) cell.Line {
	style := cell.With(cell.Dim, "b")
	if r.needs > 0 {
		style = cell.With(cell.Coloured(view.Yellow), "b")
	}
	line := cell.Of(style, " "+r.title).Add(cell.Dim, fmt.Sprintf(" %d", r.count))
	if r.needs > 0 && l.by != ByNeed {
		line = line.Add(cell.Coloured(view.Yellow), fmt.Sprintf("  ◐%d", r.needs))
	}
	if l.by == ByRepository { // another repository can have the same name
		line = line.Add(cell.Dim, "  "+filepath.Dir(r.key))
	}
	return line.Fit(width)
}

// The widths of the columns of a run, and of a list with the optional columns.
const (
	leastName    = 8
	nameColumns  = 26
	repoColumns  = 12
	ageColumns   = 4
	tokenColumns = 5
	someRoom     = 50 // the list has the repository and the size of the changes
	muchRoom     = 68 // it has the tokens too
)

// run returns the row of a run.
func (l *List) run(at, width int, now time.Time) cell.Line {
	r := l.runs[l.rows[at].run]
	lead := " "
	if at == l.at {
		lead = ">"
	}
	if l.marked[r.ID] {
		lead += "+"
	} else {
		lead += " "
	}
	mark, name := r.Status.Mark(), min(max(width/3, leastName), nameColumns, l.widest)
	line := cell.Of(cell.Bold, lead).Add(cell.Coloured(view.MarkColour(mark)), mark+" ").Add(cell.Plain, term.Pad(term.Fit(r.Ref(), name), name)+" ")
	if l.repos && l.by != ByRepository && width >= someRoom {
		repo := min(width/8, repoColumns)
		line = line.Add(cell.Dim, term.Pad(term.Fit(term.SafeLine(filepath.Base(r.Repo)), repo), repo)+" ")
	}
	line = line.Add(cell.Dim, fmt.Sprintf("%*s  ", ageColumns, view.Age(now.Sub(r.Since))))
	size := ""
	if r.Diff != nil && r.Diff.Files > 0 && width >= someRoom {
		size = fmt.Sprintf(" +%d -%d", r.Diff.Added, r.Diff.Deleted)
	}
	if width >= muchRoom && r.Usage.Known() {
		size += fmt.Sprintf(" %*s", tokenColumns, view.Tokens(&r.Usage))
	}
	line = line.Add(cell.Plain, says(r)).Fit(width-len(size)).Add(cell.Dim, size)
	if at == l.at {
		return line.All(cell.With(cell.Reversed, "b"))
	}
	return line
}

// says returns the summary of a run, or else its status.
func says(r *api.Run) string {
	if text := term.SafeLine(view.Summary(r)); text != "" {
		return text
	}
	return r.Status.String()
}
