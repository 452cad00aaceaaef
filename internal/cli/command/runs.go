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
	ColumnDiff    Column = "DIFF"
	ColumnRepo    Column = "REPO"

	columnRun Column = "RUN" // the name, or the handle of a run without one
)

// RunColumns returns all columns of a table of runs, in their order.
func RunColumns() []Column {
	return []Column{ColumnRunID, ColumnName, ColumnStatus, ColumnSummary, ColumnPR, ColumnAge, ColumnRunner, ColumnDiff, ColumnRepo}
}

// PipeColumns returns the columns of runs where no terminal limits them.
func PipeColumns() []Column { return RunColumns()[:5] }

// RunFields returns the fields of a run, by their names in JSON, for some columns.
func RunFields(columns ...Column) []string {
	fields := []string{}
	for _, c := range columns {
		for _, field := range c.fields() {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	return fields
}

// fields returns the fields of a run that its cell in a column needs.
func (c Column) fields() []string {
	switch c {
	case ColumnRunID:
		return []string{"handle"}
	case ColumnName:
		return []string{"name"}
	case ColumnStatus:
		return []string{"status", "removed_at"}
	case ColumnSummary:
		return []string{"status", "summary", "problem"}
	case ColumnPR:
		return []string{"pr"}
	case ColumnAge:
		return []string{"created_at"}
	case ColumnRunner:
		return []string{"runner"}
	case ColumnDiff:
		return []string{"diff"}
	case ColumnRepo:
		return []string{"repo"}
	default:
		return []string{"handle", "name"}
	}
}

// Cell returns the text of a run in a column, safe for a terminal. now is the time for ages.
func (c Column) Cell(r *api.Run, now time.Time) string {
	switch c {
	case ColumnRunID:
		return OrDash(r.Handle)
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
		switch {
		case r.PR == nil:
			return "-"
		case r.PR.State == agency.PROpen:
			return fmt.Sprintf("#%d", r.PR.Number)
		default:
			return term.SafeLine(fmt.Sprintf("#%d %s", r.PR.Number, r.PR.State))
		}
	case ColumnAge:
		if r.CreatedAt.IsZero() { // an agent that has not begun
			return "-"
		}
		return duration.Short(now.Sub(r.CreatedAt))
	case ColumnRunner:
		return term.SafeLine(r.Runner)
	case ColumnDiff:
		if r.Diff == nil || r.Diff.Files == 0 {
			return "-"
		}
		return fmt.Sprintf("+%d -%d", r.Diff.Added, r.Diff.Deleted)
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

// Table is a table of runs. It makes a column when it is first needed.
type Table struct {
	runs    []api.Run
	now     time.Time // for ages
	cells   map[Column][]string
	widths  map[Column]int // with the heading
	columns []Column       // those that are shown
}

// The least widths of SUMMARY, in columns of the terminal.
const (
	easySummary  = 40 // while columns that can be omitted are shown
	leastSummary = 24 // while the age is shown
	shortSummary = 8  // a narrower one shows nothing useful
)

// NewTable returns a table of runs with all columns. now is the time for ages.
func NewTable(runs []api.Run, now time.Time) *Table {
	return &Table{runs: runs, now: now, cells: map[Column][]string{}, widths: map[Column]int{}, columns: RunColumns()}
}

// column returns the cells of a column, with its heading.
func (t *Table) column(c Column) []string {
	if cells := t.cells[c]; cells != nil {
		return cells
	}
	cells := make([]string, 1, len(t.runs)+1)
	cells[0] = t.heading(c)
	for i := range t.runs {
		cells = append(cells, c.Cell(&t.runs[i], t.now))
	}
	t.cells[c], t.widths[c] = cells, term.MaxWidth(cells)
	return cells
}

// heading returns the heading of a column. For RUN it is the word for the kind of names in it, if
// all runs have the same kind.
func (t *Table) heading(c Column) string {
	if c != columnRun {
		return string(c)
	}
	named := 0
	for i := range t.runs {
		if t.runs[i].Name != "" {
			named++
		}
	}
	switch named {
	case len(t.runs):
		return string(ColumnName)
	case 0:
		return string(ColumnRunID)
	default:
		return string(columnRun)
	}
}

// width returns the width of a column, with its heading.
func (t *Table) width(c Column) int {
	t.column(c)
	return t.widths[c]
}

// Keep shows exactly these columns, uncut.
func (t *Table) Keep(columns ...Column) { t.columns = columns }

// Fit shows the columns that have room in a terminal of this width, and cuts SUMMARY to the room
// that is left. The name of a run is never cut.
func (t *Table) Fit(width int, repos bool) {
	t.columns = []Column{columnRun, ColumnStatus, ColumnSummary}
	if repos {
		t.add(ColumnRepo)
	}
	if slices.ContainsFunc(t.column(ColumnPR)[1:], func(pr string) bool { return pr != "-" }) {
		t.add(ColumnPR)
	}
	t.addIf(width, leastSummary, ColumnAge)
	if with := t.with(ColumnRunID, ColumnName); t.room(with, width) >= t.wanted(easySummary) {
		t.columns = with
	}
	t.addIf(width, easySummary, ColumnPR)
	t.addIf(width, easySummary, ColumnRunner)
	if slices.ContainsFunc(t.column(ColumnDiff)[1:], func(diff string) bool { return diff != "-" }) {
		t.addIf(width, easySummary, ColumnDiff)
	}
	if room := t.room(t.columns, width); room >= t.wanted(shortSummary) {
		cells := t.column(ColumnSummary)
		for i, summary := range cells {
			cells[i] = term.Fit(summary, room)
		}
		return
	}
	for _, c := range []Column{ColumnSummary, ColumnRepo, ColumnPR} {
		if t.total(t.columns) > width || c == ColumnSummary {
			t.columns = slices.DeleteFunc(t.columns, func(shown Column) bool { return shown == c })
		}
	}
	if t.total(t.columns) > width {
		cells := t.column(ColumnStatus)
		for i, status := range cells {
			cells[i], _, _ = strings.Cut(status, " ") // the mark
		}
		cells[0] = ""
	}
}

// add also shows a column.
func (t *Table) add(c Column) {
	if !slices.Contains(t.columns, c) {
		t.columns = t.with(c)
	}
}

// addIf also shows a column if SUMMARY keeps this width, or all that it needs.
func (t *Table) addIf(width, summary int, c Column) {
	if t.room(t.with(c), width) >= t.wanted(summary) {
		t.add(c)
	}
}

// with returns the shown columns and others, in their order. RUN_ID and NAME replace RUN.
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

// wanted returns a width for SUMMARY, or its natural width if that is smaller.
func (t *Table) wanted(width int) int { return min(width, t.width(ColumnSummary)) }

// room returns the width that columns leave for SUMMARY, which is one of them.
func (t *Table) room(columns []Column, width int) int {
	return width - t.total(columns) + t.width(ColumnSummary)
}

// total returns the width of columns and the gaps between them.
func (t *Table) total(columns []Column) int {
	total := 2 * (len(columns) - 1)
	for _, c := range columns {
		total += t.width(c)
	}
	return total
}

// Text returns the lines of the table, in colours or without.
func (t *Table) Text(colour bool) string {
	rows, cells := make([][]string, len(t.runs)+1), make([]string, (len(t.runs)+1)*len(t.columns))
	for n := range rows {
		rows[n], cells = cells[:len(t.columns):len(t.columns)], cells[len(t.columns):]
	}
	for i, c := range t.columns {
		for n, cell := range t.column(c) {
			rows[n][i] = cell
		}
	}
	paint := func(_ int, s string) string { return s }
	if colour {
		paint = func(row int, s string) string {
			if row == 0 {
				return term.Paint(string(view.Dim), s)
			}
			return term.Paint(string(view.MarkColour(t.runs[row-1].Status.Mark())), s)
		}
	}
	return term.PaintedTable(rows, slices.Index(t.columns, ColumnStatus), paint)
}

// SummaryColumns is the width of a column of summaries.
const SummaryColumns = 40
