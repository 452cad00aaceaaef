package preview

import (
	"fmt"
	"strings"
	"testing"

	"agency"
	"agency/internal/tui/cell"
)

// drawn returns the rows of a pane, with a ">" before those that are reversed.
func drawn(p *Pane, height int) string {
	rows := []string{}
	for _, line := range p.Draw(20, height) {
		lead := " "
		if strings.Contains(line[0].Attributes, "r") {
			lead = ">"
		}
		rows = append(rows, lead+strings.TrimSpace(line.Text()))
	}
	return strings.Join(rows, "|")
}

// A search goes through a text from where it is read, around its end, and marks what it found.
func TestFind(t *testing.T) {
	t.Parallel()
	p, lines := Pane{}, []cell.Line{}
	for i := range 20 {
		lines = append(lines, cell.Of(cell.Plain, fmt.Sprintf("Line %d", i)))
	}
	p.ShowText("r_1", Why, lines)
	p.Draw(20, 3)
	p.ScrollBy(2)
	for _, step := range [][2]string{{"line", ">Line 2"}, {"line 1", ">Line 10"}, {"line 1", ">Line 11"}, {"line 1", ">Line 12"}, {"Line 2", ">Line 2"}} {
		if !p.Find(step[0]) {
			t.Fatalf("%q is not found", step[0])
		}
		if got := drawn(&p, 3); !strings.Contains(got+"|", step[1]+"|") {
			t.Errorf("after %q: %s, want %s", step[0], got, step[1])
		}
	}
	if p.Find("LINE") || strings.Contains(drawn(&p, 3), ">") {
		t.Error("capital letters do not count")
	}
}

// A screen is searched too, as it is drawn: what an agent hid in it is not found.
func TestFindOnAScreen(t *testing.T) {
	t.Parallel()
	p := Pane{}
	rows := [][]agency.StyledText{}
	for i := range 10 {
		rows = append(rows, []agency.StyledText{{Text: "ro"}, {Text: fmt.Sprintf("w %d\x1b[8m", i), Foreground: "2"}})
	}
	p.Show("r_1", &agency.Screen{Rows: rows})
	p.Draw(20, 4)
	if !p.Find("row 2") {
		t.Fatal("row 2 is not found")
	}
	if got := drawn(&p, 4); !strings.Contains(got, ">row 2") {
		t.Errorf("row 2 is not seen: %s", got)
	}
	if p.Find("\x1b[8m") {
		t.Error("a sequence is found")
	}
	p.Forget()
	if got := drawn(&p, 4); strings.Contains(got, ">") {
		t.Errorf("it is still marked: %s", got)
	}
}
