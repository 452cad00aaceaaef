package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
)

// On a pane that has the whole screen / finds a text, and else it filters the list.
func TestFindInThePane(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("+ /")
	u.types("proceed")
	u.sees("find> proceed")
	u.presses("enter")
	if line := lineWith(u.m.Frame(), "proceed"); !strings.HasPrefix(line, "\x1b[7m") {
		t.Errorf("what was found is not marked: %q", line)
	}
	u.presses("esc")
	if line := lineWith(u.m.Frame(), "proceed"); strings.HasPrefix(line, "\x1b[7m") {
		t.Errorf("it is still marked: %q", line)
	}
	u.presses("/")
	u.types("nowhere")
	u.presses("enter")
	u.sees("nowhere is not in what is shown here")
	u.presses("+ /")
	u.types("docs")
	u.sees("/docs")
	u.seesNot("search")
}

// The pane takes more or less of the screen.
func TestPaneSize(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 40)
	rows := func() int {
		return strings.Count(ansi.Strip(u.m.Frame()[strings.Index(u.m.Frame(), "[Screen]"):]), "\n")
	}
	usual := rows()
	u.presses("> >")
	if larger := rows(); larger <= usual {
		t.Errorf("%d rows, before it %d", larger, usual)
	}
	u.presses("< < < < < <")
	if smaller := rows(); smaller >= usual {
		t.Errorf("%d rows, before it %d", smaller, usual)
	}
	u.sees("idle")
}

// Rows that scrolled off the screen come when the user scrolls up to them, or looks for a text.
func TestHistory(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	asked := []int{}
	u.m.desk.Daemon.ShowScreen = func(_ context.Context, req api.ShowScreenRequest) (api.ShowScreenResponse, error) {
		asked = append(asked, req.History)
		s := screenOf("the first line", "the second line", "now")
		if s.Above = 2; req.History == 0 {
			s = screenOf("now")
		}
		return api.ShowScreenResponse{RunID: agency.RunID(req.Run), Screen: s}, nil
	}
	u.presses("j")
	u.sees("now")
	u.seesNot("the first line")
	u.presses("+ /")
	u.types("First")
	u.presses("enter")
	u.sees("First is not in what is shown here")
	u.presses("/")
	u.types("first")
	u.presses("enter")
	if line := lineWith(u.m.Frame(), "the first line"); !strings.HasPrefix(line, "\x1b[7m") {
		t.Errorf("it is not marked: %q", line)
	}
	if diff := cmp.Diff([]int{0, mostHistory}, asked); diff != "" {
		t.Error(diff)
	}
}

// Where the whole screen is seen, K asks for what scrolled off it, and a screen without any is asked for
// once: after that, the look waits for a change.
func TestHistoryOfAScreenThatFits(t *testing.T) {
	t.Parallel()
	u := seated(t, 160, 50)
	asked := []api.ShowScreenRequest{}
	u.m.desk.Daemon.ShowScreen = func(_ context.Context, req api.ShowScreenRequest) (api.ShowScreenResponse, error) {
		asked = append(asked, req)
		return api.ShowScreenResponse{RunID: agency.RunID(req.Run), Screen: screenOf("now")}, nil
	}
	u.presses("j K")
	u.tell(lookMsg{u.m.board.eye.turn})
	if len(asked) != 3 || asked[1].History != mostHistory || asked[1].Seen != "" || asked[2].Seen == "" {
		t.Errorf("asked %+v", asked)
	}
}

// A search in the pane of an empty list finds nothing.
func TestFindWithoutARun(t *testing.T) {
	t.Parallel()
	u := sit(t, 80, 24)
	u.presses("+ / :")
	u.types("find a text")
	u.presses("enter")
	u.sees("No run yet")
}

// The log is shown at its end, and follows it as long as its end is seen.
func TestLogFollows(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	lines := 40
	u.m.desk.Daemon.ShowOutput = func(context.Context, api.ShowOutputRequest) (api.ShowOutputResponse, error) {
		resp := api.ShowOutputResponse{}
		for i := range lines {
			resp.Lines = append(resp.Lines, fmt.Sprintf("line %d of the log", i+1))
		}
		return resp, nil
	}
	u.presses("l")
	u.sees("line 40 of the log")
	lines = 41
	u.tell(lookMsg{u.m.board.eye.turn})
	u.sees("line 41 of the log")
	u.presses("K")
	lines = 60
	u.tell(lookMsg{u.m.board.eye.turn})
	u.seesNot("line 60 of the log")
}

// What the pane shows can be copied, and after a search the row that was found.
func TestCopy(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	copied := func() string {
		_, cmd := u.m.Update(tea.KeyPressMsg{Code: 'Y', Text: "Y"})
		u.sees("handed to the terminal to copy")
		return fmt.Sprint(cmd())
	}
	u.sees("proceed")
	if got := copied(); !strings.HasPrefix(got, "● Bash(npm test -- login)\n\n Do you want to proceed?") {
		t.Errorf("copied %q", got)
	}
	u.presses("+ /")
	u.types("proceed")
	u.presses("enter")
	if got := copied(); got != "Do you want to proceed?" {
		t.Errorf("copied %q", got)
	}
	u.presses("_ Y")
	u.sees("the pane shows nothing to copy")
}
