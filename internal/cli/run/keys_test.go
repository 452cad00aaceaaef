package run_test

import (
	"testing"

	"agency/internal/cli/run"
)

// The keys that lead out of a terminal are those that the user's tmux has, in each case.
func TestWayOut(t *testing.T) {
	t.Parallel()
	const usual = "C-b\nbind-key    -T prefix L       switch-client -l\nbind-key    -T prefix d       detach-client\nbind-key -r -T prefix Up select-pane -U\n"
	const own = "C-a\nbind-key -T prefix L resize-pane -R 5\nbind-key -T prefix Tab switch-client -l\nbind-key -T prefix q detach-client\nbind-key -T prefix a last-pane\n"
	const agency = usual + "bind-key -T prefix a if-shell -F \"#{@agency_answer}\" \"run-shell -C '#{@agency_answer}'\"\n"
	for _, test := range []struct {
		listed                string
		inside, switched, own bool
		want                  string
		answers               bool
	}{
		{usual, true, true, false, "back to here: Ctrl-b L", true},
		{usual, false, false, false, "to leave: Ctrl-b d", true},
		{usual, true, false, false, "to leave: Ctrl-b Ctrl-b d", true},
		{usual, true, false, true, "to leave: F12", true},
		{agency, true, true, true, "back to here: Ctrl-b L", true},
		{own, true, true, false, "back to here: Ctrl-a Tab", false},
		{own, false, false, false, "to leave: Ctrl-a q", false},
		{"C-b\nbind-key -T prefix x kill-pane\n", true, true, false, "back to here: Ctrl-b :switch-client -l", true},
		{"C-b\nbind-key -T prefix x kill-pane\n", false, false, false, "to leave: Ctrl-b :detach-client", true},
		{"", false, false, false, "to leave: Ctrl-b d", true}, // the server did not answer
	} {
		if got, answers := run.WayOut(test.listed, test.inside, test.switched, test.own); got != test.want || answers != test.answers {
			t.Errorf("%q: got %q, %v, want %q, %v", test.listed, got, answers, test.want, test.answers)
		}
	}
}

// A tmux is around the terminal here, or around the ssh that leads here.
func TestNested(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tmux, term string
		want       bool
	}{
		{"", "xterm-256color", false},
		{"/tmp/tmux-1/default,1,0", "xterm-256color", true},
		{"", "tmux-256color", true},
		{"", "screen", true},
	} {
		if got := run.Nested(map[string]string{"TMUX": test.tmux, "TERM": test.term}); got != test.want {
			t.Errorf("TMUX %q, TERM %q: got %v", test.tmux, test.term, got)
		}
	}
}
