package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// Column is a column of a table of runs.
type Column string

// The columns of a table of runs. The first five are all that a pipe gets.
const (
	ColumnRunID   Column = "RUN_ID"
	ColumnName    Column = "NAME"
	ColumnStatus  Column = "STATUS"
	ColumnSummary Column = "SUMMARY"
	ColumnPR      Column = "PR"
	ColumnAge     Column = "AGE"
	ColumnRunner  Column = "RUNNER"
	ColumnRepo    Column = "REPO"

	columnRun Column = "RUN" // the name, or the handle of a run without one
)

// RunColumns returns all columns of a table of runs, in their order.
func RunColumns() []Column {
	return []Column{ColumnRunID, ColumnName, ColumnStatus, ColumnSummary, ColumnPR, ColumnAge, ColumnRunner, ColumnRepo}
}

// PipeColumns returns the columns of runs where no terminal limits them.
func PipeColumns() []Column { return RunColumns()[:5] }

// RunFields returns the fields of a run, by their names in JSON, that its columns and its place in
// a list need.
func RunFields() []string {
	return []string{
		"id", "handle", "name", "status", "summary", "problem", "since", "pr_number", "runner", "repo", "created_at", "removed_at",
	}
}

// Cell returns the text of a run in a column, safe for a terminal. now is the time for ages.
func (c Column) Cell(r *api.Run, now time.Time) string {
	switch c {
	case ColumnRunID:
		return r.Handle
	case ColumnName:
		return OrDash(r.Name)
	case ColumnStatus:
		if r.RemovedAt != nil {
			return r.Status.Mark() + " " + r.Status.String() + " (removed)"
		}
		return r.Status.Mark() + " " + r.Status.String()
	case ColumnSummary:
		return term.SafeLine(view.Summary(r))
	case ColumnPR:
		if r.PRNumber == nil {
			return "-"
		}
		return fmt.Sprintf("#%d", *r.PRNumber)
	case ColumnAge:
		return duration.Short(now.Sub(r.CreatedAt))
	case ColumnRunner:
		return term.SafeLine(r.Runner)
	case ColumnRepo:
		return term.SafeLine(filepath.Base(r.Repo))
	default:
		return r.Ref()
	}
}

// RunTable returns runs as a table: on a terminal the columns that it has room for, elsewhere those
// of a pipe, uncut. With repos, or for runs of several repositories, a terminal shows REPO too.
func (d *Deps) RunTable(runs []api.Run, repos bool) string {
	t := NewTable(runs, d.Now())
	if width := d.Columns(); width > 0 {
		t.Fit(width, repos || slices.ContainsFunc(runs, func(r api.Run) bool { return r.Repo != runs[0].Repo }))
	} else {
		t.Keep(PipeColumns()...)
	}
	return t.Text(d.Colour())
}

// Table is a table of runs.
type Table struct {
	labels  []agency.Label // of the rows
	cells   map[Column][]string
	widths  map[Column]int // with the heading
	columns []Column       // those that are shown
}

// The least widths of SUMMARY, in columns of the terminal.
const (
	easySummary  = 40 // with columns that can be missed
	leastSummary = 24 // with the age
	shortSummary = 8  // less says nothing
)

// NewTable returns a table of runs with all columns. now is the time for ages.
func NewTable(runs []api.Run, now time.Time) *Table {
	t := &Table{cells: map[Column][]string{}, widths: map[Column]int{}, columns: RunColumns()}
	named := 0
	for i := range runs {
		t.labels = append(t.labels, runs[i].Status)
		if runs[i].Name != "" {
			named++
		}
	}
	for _, c := range append(RunColumns(), columnRun) {
		heading := string(c)
		switch {
		case c == columnRun && named == len(runs):
			heading = string(ColumnName)
		case c == columnRun && named == 0:
			heading = string(ColumnRunID)
		}
		column := []string{heading}
		for i := range runs {
			column = append(column, c.Cell(&runs[i], now))
		}
		t.cells[c] = column
		for _, cell := range column {
			t.widths[c] = max(t.widths[c], term.Width(cell))
		}
	}
	return t
}

// Keep shows these columns, uncut.
func (t *Table) Keep(columns ...Column) { t.columns = columns }

// Fit shows the columns that have room in a terminal of this width, and cuts SUMMARY to what the
// others leave. What names a run is never cut.
func (t *Table) Fit(width int, repos bool) {
	t.columns = []Column{columnRun, ColumnStatus, ColumnSummary}
	if repos {
		t.add(ColumnRepo)
	}
	if slices.ContainsFunc(t.cells[ColumnPR][1:], func(pr string) bool { return pr != "-" }) {
		t.add(ColumnPR)
	}
	t.addIf(width, leastSummary, ColumnAge)
	if with := t.with(ColumnRunID, ColumnName); t.room(with, width) >= t.wanted(easySummary) {
		t.columns = with
	}
	t.addIf(width, easySummary, ColumnPR)
	t.addIf(width, easySummary, ColumnRunner)
	if room := t.room(t.columns, width); room >= t.wanted(shortSummary) {
		for i, summary := range t.cells[ColumnSummary] {
			t.cells[ColumnSummary][i] = term.Fit(summary, room)
		}
		return
	}
	for _, c := range []Column{ColumnSummary, ColumnRepo, ColumnPR} {
		if t.total(t.columns) > width || c == ColumnSummary {
			t.columns = slices.DeleteFunc(t.columns, func(shown Column) bool { return shown == c })
		}
	}
	if t.total(t.columns) > width {
		for i, status := range t.cells[ColumnStatus] {
			t.cells[ColumnStatus][i], _, _ = strings.Cut(status, " ") // the mark
		}
		t.cells[ColumnStatus][0] = ""
	}
}

// add shows a column too.
func (t *Table) add(c Column) {
	if !slices.Contains(t.columns, c) {
		t.columns = t.with(c)
	}
}

// addIf shows a column too if SUMMARY keeps this width, or all that it needs.
func (t *Table) addIf(width, summary int, c Column) {
	if t.room(t.with(c), width) >= t.wanted(summary) {
		t.add(c)
	}
}

// with returns the shown columns and others, in their order. RUN_ID and NAME take the place of RUN.
func (t *Table) with(more ...Column) []Column {
	var columns []Column
	if !slices.Contains(more, ColumnRunID) && slices.Contains(t.columns, columnRun) {
		columns = append(columns, columnRun)
	}
	for _, c := range RunColumns() {
		if slices.Contains(t.columns, c) || slices.Contains(more, c) {
			columns = append(columns, c)
		}
	}
	return columns
}

// wanted returns a width of SUMMARY, or its natural one if that is less.
func (t *Table) wanted(width int) int { return min(width, t.widths[ColumnSummary]) }

// room returns what columns leave for SUMMARY, which is one of them.
func (t *Table) room(columns []Column, width int) int {
	return width - t.total(columns) + t.widths[ColumnSummary]
}

// total returns the width of columns and the gaps between them.
func (t *Table) total(columns []Column) int {
	total := 2 * (len(columns) - 1)
	for _, c := range columns {
		total += t.widths[c]
	}
	return total
}

// Text returns the lines of the table, in colours or without.
func (t *Table) Text(colour bool) string {
	rows := make([][]string, len(t.labels)+1)
	for n := range rows {
		for _, c := range t.columns {
			rows[n] = append(rows[n], t.cells[c][n])
		}
	}
	paint := func(_ int, s string) string { return s }
	if colour {
		paint = func(row int, s string) string {
			if row == 0 {
				return term.Paint(string(view.Dim), s)
			}
			return term.Paint(string(view.MarkColour(t.labels[row-1].Mark())), s)
		}
	}
	return term.PaintedTable(rows, slices.Index(t.columns, ColumnStatus), paint)
}

// SummaryColumns is the width of a column of summaries.
const SummaryColumns = 40
