package terminal_test

import (
	"encoding/json"
	"slices"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// A client gets the screen of a run as styled text: at once, and again when it has changed. It
// changes the size of no terminal.
func TestScreen(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, `printf '\033]0;title\007\033[1;31mred\033[0m plain\n'; while read line; do echo "got $line"; done; echo over`)
	p := paneOf(t, f, r)
	p.shows("plain")
	size := p.is("#{pane_width}x#{pane_height}")
	ask := func(req api.ShowScreenRequest) api.ShowScreenResponse {
		t.Helper()
		req.Run = string(r.ID)
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Data api.ShowScreenResponse }
		if err := json.Unmarshal([]byte(succeeds(t, f.AgencyIn(string(body), "api", "run.screen", "-"))), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Data
	}
	first := ask(api.ShowScreenRequest{}).Screen
	if want := []agency.StyledText{{Text: "red", Foreground: "1", Attributes: "b"}, {Text: " plain"}}; len(first.Rows) != 1 || !slices.Equal(first.Rows[0], want) {
		t.Errorf("the rows are %v, want %v", first.Rows, want)
	}
	if !first.Live || first.Cursor == nil || first.Cursor.Row != 1 {
		t.Errorf("the screen is %+v", first)
	}
	if same := ask(api.ShowScreenRequest{Seen: first.Revision, Wait: 10}); !same.TimedOut || same.Screen.Revision != first.Revision {
		t.Errorf("nothing changed, and the answer is %+v", same)
	}
	succeeds(t, f.Agency("send", r.Handle, "one"))
	next := ask(api.ShowScreenRequest{Seen: first.Revision, Wait: 60_000})
	if next.TimedOut || len(next.Screen.Rows) < 2 {
		t.Errorf("after the next line the screen is %+v", next)
	}
	if now := p.is("#{pane_width}x#{pane_height}"); now != size {
		t.Errorf("the terminal was %s and is %s", size, now)
	}
	p.keys("C-d")
	completes(t, f, r)
	succeeds(t, f.Agency("rm", r.Handle))
	gone := ask(api.ShowScreenRequest{})
	if gone.Screen.Live || gone.Screen.Cursor != nil || gone.Screen.Rows == nil {
		t.Errorf("of a removed run the screen is %+v", gone)
	}
}
