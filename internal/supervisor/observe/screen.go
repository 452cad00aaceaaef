package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/status"
)

// screenQuiet is how long an agent's terminal must be still before it is read: a half painted screen
// shows nothing reliable.
const screenQuiet = 1500 * time.Millisecond

// lookSoon reads an agent's screen once its output has been still for a while. The screen is the
// last resort: it is not read for an agent that reports its own state, unless it is unknown which
// of its requests a user can answer.
func (ob *Observer) lookSoon(id agency.RunID) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	l := ob.live[id]
	if l == nil {
		return
	}
	quiet, vague := screenQuiet, status.Vague(l.agentState)
	if vague {
		quiet = dialogQuiet
	}
	switch {
	case status.SpokeForItself(l.agentState) && !ob.Errors.wanted(l) && !vague:
	case l.look != nil:
		l.look.Reset(quiet)
	default:
		l.look = time.AfterFunc(quiet, func() {
			if ob.ctx.Err() == nil {
				ob.Look(ob.ctx, id)
				ob.LookAtDialog(ob.ctx, id)
				ob.Errors.readShown(ob.ctx, id)
			}
		})
	}
}

// Look reads an agent's screen and adds what is new in it to the evidence. It returns the evidence
// that the screen shows.
func (ob *Observer) Look(ctx context.Context, id agency.RunID) []agency.Evidence {
	l, ok := ob.copyOf(id)
	if !ok || status.SpokeForItself(l.agentState) {
		return nil
	}
	r := ob.withTerminal(ctx, &l)
	if r == nil || !ob.Harness.ReadsScreen(r.Runner) {
		return nil
	}
	text, err := ob.Tmux.Capture(ctx, r.Session(), r.Attempt.Pane)
	if err != nil {
		return nil // the terminal is going away; its wrapper reports that
	}
	shown := ob.Harness.Screen(r.Runner, strings.Split(strings.TrimRight(text, "\n"), "\n"))
	ob.mu.Lock()
	now := ob.live[id]
	if now == nil || slices.Equal(now.screen, shown) && !saysMore(now.agentState, shown) {
		ob.mu.Unlock()
		return shown
	}
	before := now.screen
	now.screen = shown
	ob.mu.Unlock()
	drafts := slices.Clone(shown)
	if asks(before) && !asks(shown) && before[0].Event != agency.EventComplete { // otherwise a title reports the end of it
		gone := agency.Evidence{Source: agency.FromScreen, Signal: agency.SignalAnswered}
		if before[0].Kind == agency.AsksDialog {
			gone.Signal = agency.SignalSession // its program begins; whether it works is still unknown
		}
		drafts = append([]agency.Evidence{gone}, drafts...)
	}
	ob.keep(ctx, &l, drafts)
	return shown
}

// withTerminal returns the run of a live attempt, if its agent runs in a terminal; nil otherwise.
func (ob *Observer) withTerminal(ctx context.Context, l *liveRun) *agency.Run {
	r, err := ob.Store.Run(ctx, l.id)
	if err != nil || !r.Attempt.HasTerminal() || r.Attempt.State != agency.Running || r.Attempt.Number != l.attempt {
		return nil
	}
	return r
}

// saysMore reports whether a screen that shows what it showed at the last look shows more than is
// known: details of a request, a dialog that stayed while the agent worked, or that the agent
// rests.
func saysMore(s *agency.AgentState, shown []agency.Evidence) bool {
	stays := s.Turn != agency.TurnWorking && len(s.Requests) == 0 &&
		slices.ContainsFunc(shown, func(e agency.Evidence) bool { return e.Signal == agency.SignalAsked && e.Kind == agency.AsksDialog })
	return stays || status.NeedsDetail(s, shown) || len(shown) > 0 && !asks(shown) && status.MayRest(s)
}

func asks(evidence []agency.Evidence) bool {
	return slices.ContainsFunc(evidence, func(e agency.Evidence) bool { return e.Signal == agency.SignalAsked })
}
