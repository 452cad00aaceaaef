package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// RunTable writes runs as people read them: on a terminal in as many columns as it has, elsewhere in as many as it takes.
func (d *Deps) RunTable(runs []api.Run) string {
	rows := [][]string{{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"}}
	room, onTerminal := term.Columns(d.Terminal)
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
		rows = append(rows, []string{r.Handle, OrDash(r.Name), r.Status.Mark() + " " + status, term.Fit(term.SafeLine(OrProblem(r)), SummaryColumns), pr})
	}
	paint := func(_ int, s string) string { return s }
	if d.Colour() {
		paint = func(row int, s string) string {
			if row == 0 {
				return "\x1b[2m" + s + "\x1b[0m"
			}
			return colourOf(runs[row-1].Status) + s + "\x1b[0m"
		}
	}
	if !onTerminal {
		return term.PaintedTable(rows, 2, paint)
	}
	Squeeze(rows, room)
	var b strings.Builder
	for line := range strings.Lines(term.PaintedTable(rows, 2, paint)) {
		b.WriteString(ansi.Truncate(strings.TrimSuffix(line, "\n"), room, "…") + "\n")
	}
	return b.String()
}

// OrProblem is the summary of a run, or what is wrong with it.
func OrProblem(r *api.Run) string { return cmp.Or(r.Problem, r.Summary) }

// Squeeze cuts the cells of a table of runs that is too wide: first the handle, of which a beginning will do to name the run,
// then the summary and the name.
func Squeeze(rows [][]string, room int) {
	term.Narrow(rows, room, []term.Cut{{0, 14}, {3, 24}, {1, 12}, {3, 8}, {0, 8}, {1, 8}})
}

func colourOf(l agency.Label) string { return MarkColour(l.Mark()) }

// MarkColour is the escape sequence for the colour of a mark.
func MarkColour(mark string) string {
	switch mark {
	case "●":
		return "\x1b[32m"
	case "◐":
		return "\x1b[33m"
	case "✕":
		return "\x1b[31m"
	case "✓":
		return "\x1b[36m"
	default:
		return "\x1b[2m"
	}
}

const SummaryColumns = 40
