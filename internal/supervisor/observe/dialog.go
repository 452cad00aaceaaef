package observe

import (
	"context"
	"strings"
	"time"

	"agency"
)

// dialogQuiet is how long a terminal must be still before it is read for what it asks, or for which
// of several requests it shows. A dialog that is not drawn yet is read again when it is.
const dialogQuiet = 150 * time.Millisecond

// LookAtDialog puts the request first whose dialog a run's terminal shows, when several are open:
// hooks can report them in another order than the program shows them.
func (ob *Observer) LookAtDialog(ctx context.Context, id agency.RunID) {
	l, ok := ob.copyOf(id)
	if !ok || len(l.agentState.Requests) < 2 {
		return
	}
	r := ob.withTerminal(ctx, &l)
	if r == nil {
		return
	}
	screen, err := ob.Tmux.CaptureStyled(ctx, r.Session(), r.Attempt.Pane)
	if err != nil {
		return // the terminal is going away; its wrapper reports that
	}
	requests := l.agentState.Requests
	i := ob.Harness.Shown(r.Runner.Kind, strings.Split(strings.TrimRight(screen, "\n"), "\n"), requests)
	if i > 0 || i == 0 && !requests[0].Shown {
		ob.keep(ctx, &l, []agency.Evidence{{Source: agency.FromScreen, Signal: agency.SignalShown, Event: "dialog", ID: requests[i].ID}})
	}
}
