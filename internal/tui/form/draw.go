package form

import (
	"fmt"
	"strings"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// labelColumns is the width of the labels in front of the texts.
const labelColumns = 14

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	if p.check != nil {
		return page.Fill(p.check.draw(width), width, height)
	}
	lines := []cell.Line{}
	problem := p.drawProblem(width)
	for i, label := range labels() {
		lead := "  "
		if i == p.at {
			lead = "> "
		}
		head := lead + term.Pad(label[0], labelColumns-3) + " "
		switch i {
		case prompt:
			lines = append(lines, p.drawTask(head, width, height-len(problem)-p.below(len(problem) == 0))...)
		case p.at:
			lines = append(lines, p.fields[i].Draw(head, width))
		default:
			lines = append(lines, cell.Of(cell.Bold, head).Add(cell.Plain, p.fields[i].Text()))
		}
		if p.hinted(i, len(problem) == 0) {
			lines = append(lines, cell.Of(cell.Dim, strings.Repeat(" ", labelColumns)+p.hint(i, width-labelColumns)))
		}
	}
	return page.Fill(append(lines, problem...), width, height)
}

// hinted reports whether a row has a hint below it: the row at the cursor has and, if free is true, an empty
// row. The form is free if it shows no problem.
func (p *Page) hinted(row int, free bool) bool { return row == p.at || free && p.empty(row) }

// below returns how many rows of the screen the form needs besides the prompt and the problem.
func (p *Page) below(free bool) int {
	below := rows - 1
	for row := range rows {
		if p.hinted(row, free) {
			below++
		}
	}
	return below
}

// drawProblem returns the rows with the problem, below the others.
func (p *Page) drawProblem(width int) []cell.Line {
	if p.problem == "" {
		return nil
	}
	return append([]cell.Line{cell.Of(cell.Plain, "")}, cell.Wrap(cell.With(cell.Coloured(view.Red), "b"), p.problem, 2, width, 6)...)
}

// drawTask returns the prompt. While the user writes it, it has the height that the other rows leave, else
// one row.
func (p *Page) drawTask(head string, width, height int) []cell.Line {
	if p.at == prompt {
		return p.task.Draw(head, width, max(height, 2))
	}
	first, rest, more := strings.Cut(p.text(), "\n")
	line := cell.Of(cell.Bold, head).Add(cell.Plain, first)
	if more {
		line = line.Add(cell.Dim, fmt.Sprintf("  … %d lines", strings.Count(rest, "\n")+2))
	}
	return []cell.Line{line}
}

// empty reports whether nothing is written in a row.
func (p *Page) empty(row int) bool {
	if row == prompt {
		return p.text() == ""
	}
	return p.fields[row].Text() == ""
}

// hint returns what a row is for and, for the row at the cursor, its choices.
func (p *Page) hint(row, width int) string {
	text := labels()[row][1]
	if choices := p.choices(row); row == p.at && len(choices) > 0 {
		text += "; ctrl-n: " + strings.Join(choices, ", ")
	}
	return term.Fit(text, max(width, 1))
}
