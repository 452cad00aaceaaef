package term

import "strings"

// Cut makes a column of a table narrower, but not narrower than its least width.
type Cut [2]int // the column, and its least width

// Narrow makes one cut after the other until rows fit into width columns of a terminal.
func Narrow(rows [][]string, width int, cuts []Cut) {
	total := 2 * (len(rows[0]) - 1)
	widths := make([]int, len(rows[0]))
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		total += widths[i]
	}
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

// Table aligns the cells of rows, a line for each row, without colours.
func Table(rows [][]string) string {
	return PaintedTable(rows, -1, func(_ int, s string) string { return s })
}

// PaintedTable is Table in colours: paint colours the cell in column painted, and all cells of row
// 0. Without rows it returns nothing.
func PaintedTable(rows [][]string, painted int, paint func(row int, s string) string) string {
	if len(rows) == 0 {
		return ""
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padded := Pad(cell, widths[i])
			if i == len(row)-1 {
				padded = cell
			}
			if i == painted || n == 0 {
				padded = paint(n, padded)
			}
			line.WriteString(padded)
			if i < len(row)-1 {
				line.WriteString("  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
