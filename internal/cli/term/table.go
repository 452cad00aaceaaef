package term

import (
	"bytes"
	"strings"
)

// Cut makes a column of a table narrower, but not narrower than its least width.
type Cut [2]int // the column, and its least width

// Narrow makes one cut after another until rows fit into width columns of a terminal.
func Narrow(rows [][]string, width int, cuts []Cut) {
	total, widths := measure(rows)
	for _, step := range cuts {
		cut := min(total-width, widths[step[0]]-step[1])
		if cut <= 0 {
			continue
		}
		widths[step[0]] -= cut
		total -= cut
		for _, row := range rows {
			row[step[0]] = Fit(row[step[0]], widths[step[0]])
		}
	}
}

// TableWidth returns the width of rows as Table aligns them.
func TableWidth(rows [][]string) int {
	total, _ := measure(rows)
	return total
}

// measure returns the width of aligned rows, and that of each column.
func measure(rows [][]string) (total int, widths []int) {
	total, widths = 2*(len(rows[0])-1), make([]int, len(rows[0]))
	for i := range widths {
		var g gauge
		for _, row := range rows {
			widths[i] = max(widths[i], g.width(row[i]))
		}
		total += widths[i]
	}
	return total, widths
}

// Table aligns the cells of rows, a line for each row, without colours.
func Table(rows [][]string) string {
	return PaintedTable(rows, -1, func(_ int, s string) string { return s })
}

// PaintedTable is Table in colours: paint colours the cell in column painted of each row, and all
// cells of row 0. Without rows it returns nothing.
func PaintedTable(rows [][]string, painted int, paint func(row int, s string) string) string {
	if len(rows) == 0 {
		return ""
	}
	_, widths := measure(rows)
	gauges := make([]gauge, len(widths))
	line := 0 // a line without colours and wide characters takes at most this
	for _, width := range widths {
		line += width + 2
	}
	text := make([]byte, 0, len(rows)*line)
	for n, row := range rows {
		for i, cell := range row {
			padding := widths[i] - gauges[i].width(cell)
			switch last := i == len(row)-1; {
			case last && (i == painted || n == 0):
				text = append(text, paint(n, cell)...)
			case last:
				text = append(text, cell...)
			case i == painted || n == 0:
				text = append(append(text, paint(n, cell+strings.Repeat(" ", padding))...), "  "...)
			default:
				text = append(text, cell...)
				for range padding + 2 {
					text = append(text, ' ')
				}
			}
		}
		text = append(bytes.TrimRight(text, " "), '\n')
	}
	return string(text)
}

// gauge measures cells. It measures equal cells in a row, such as statuses, only once.
type gauge struct {
	cell string
	is   int
}

func (g *gauge) width(cell string) int {
	if cell != g.cell {
		g.cell, g.is = cell, Width(cell)
	}
	return g.is
}

// MaxWidth returns the width of the widest cell.
func MaxWidth(cells []string) int {
	var g gauge
	widest := 0
	for _, cell := range cells {
		widest = max(widest, g.width(cell))
	}
	return widest
}
