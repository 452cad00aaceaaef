package command

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// RunTable returns runs as a table: on a terminal within its columns, elsewhere as wide as it
// needs.
func (d *Deps) RunTable(runs []api.Run) string {
	rows := [][]string{{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"}}
	width, onTerminal := term.Columns(d.Terminal)
	for i := range runs {
		r := &runs[i]
		pr := "-"
		if r.PRNumber != nil {
			pr = fmt.Sprintf("#%d", *r.PRNumber)
		}
		status := string(r.Status)
		if r.RemovedAt != nil {
			status += " (removed)"
		}
		rows = append(rows, []string{r.Handle, OrDash(r.Name), r.Status.Mark() + " " + status, term.Fit(term.SafeLine(view.Summary(r)), SummaryColumns), pr})
	}
	paint := func(_ int, s string) string { return s }
	if d.Colour() {
		paint = func(row int, s string) string {
			if row == 0 {
				return term.Paint(string(view.Dim), s)
			}
			return term.Paint(string(view.MarkColour(runs[row-1].Status.Mark())), s)
		}
	}
	if !onTerminal {
		return term.PaintedTable(rows, 2, paint)
	}
	Squeeze(rows, width)
	var b strings.Builder
	for line := range strings.Lines(term.PaintedTable(rows, 2, paint)) {
		b.WriteString(ansi.Truncate(strings.TrimSuffix(line, "\n"), width, "…") + "\n")
	}
	return b.String()
}

// Squeeze cuts the cells of a table of runs that is too wide: first the handle, whose beginning is
// enough to name the run, then the summary and the name.
func Squeeze(rows [][]string, width int) {
	term.Narrow(rows, width, []term.Cut{{0, 14}, {3, 24}, {1, 12}, {3, 8}, {0, 8}, {1, 8}})
}

// SummaryColumns is the width of a column of summaries.
const SummaryColumns = 40
