package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/supervisor/observe"
)

// An agent to which agency speaks in its own protocol outlives its wrapper: its files stay, and
// another wrapper continues where the first one was killed.

// Times of a replaced wrapper.
const (
	// replaceWait is how long a new wrapper may take to hold the lock of its attempt, and the time
	// between two wrappers that did not connect.
	replaceWait  = 15 * time.Second
	replaceEvery = 5 * time.Millisecond
	// mostReplaced is how many wrappers may fail one after the other, those that did not start included.
	mostReplaced = 3
)

// outlived reports whether the agent of an attempt may have outlived its wrapper.
func (s *settler) outlived(r *agency.Run, start *agency.Start) bool {
	return start != nil && r.Attempt.Mode == agency.ModeProtocol && r.Attempt.State == agency.Running && r.Attempt.StopRequestedAt == nil
}

// replaceWrapper starts a wrapper for an agent that outlived its own, or settles the attempt by what
// held the exit status of an agent that has ended meanwhile. alive reports whether a wrapper holds
// the attempt, or another one is to be tried.
func (s *settler) replaceWrapper(ctx context.Context, r *agency.Run, start *agency.Start) (alive bool, err error) {
	unlock, err := s.locks.Lock(ctx, "replace "+string(r.ID))
	if err != nil {
		return false, err
	}
	defer unlock()
	dir := observe.AttemptDir(r.Dir, r.Attempt.Number)
	if locked, err := s.attempts.Locked(dir); locked || err != nil {
		return locked, err // another goroutine was faster
	}
	lives, err := s.attempts.Alive(start.Runner)
	if err != nil {
		return false, fmt.Errorf("look at the agent of %s: %w", r.Ref(), err)
	}
	early, tries := false, 0
	s.live.change(r.ID, func(l *live) {
		if early = l.replaced > 0 && time.Since(l.replacedAt) < replaceWait; early {
			return // the last one did not connect, and what was in its way may go
		}
		l.replaced, l.replacedAt = l.replaced+1, time.Now()
		tries = l.replaced
	})
	switch {
	case lives && early:
		return true, nil
	case !lives || tries > mostReplaced:
		return false, s.settleUnheld(ctx, r, start, lives)
	}
	s.log.Info("replace a wrapper that was killed", "run", r.ID)
	killpoint.At("replace.begun")
	argv := append(slices.Clone(s.wrapper), filepath.Join(dir, adoptFile))
	if err := s.tmux.ReplaceWrapper(ctx, r, argv); err != nil {
		// The daemon may be stopping, or tmux be slow: neither is a reason to end the agent.
		s.log.Error("replace a wrapper", "run", r.ID, "err", err)
		return true, ctx.Err()
	}
	for begin := time.Now(); ; time.Sleep(replaceEvery) {
		locked, err := s.attempts.Locked(dir)
		lives, lost := s.attempts.Alive(start.Runner)
		switch err := errors.Join(err, lost); {
		case err != nil:
			return false, err
		case locked:
			return true, nil
		case !lives:
			return false, s.settleUnheld(ctx, r, start, lives)
		case time.Since(begin) > replaceWait:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
	}
}

// settleUnheld settles an attempt that no wrapper can hold any more: by the exit status that its
// holder left, if its agent has ended, or else as lost.
func (s *settler) settleUnheld(ctx context.Context, r *agency.Run, start *agency.Start, lives bool) error {
	if lives {
		return s.loseFor(ctx, r, start, "no wrapper could adopt its agent, so agency ended it")
	}
	exit, err := s.attempts.Held(observe.AttemptDir(r.Dir, r.Attempt.Number), start, r.Runner.Kind)
	if err != nil {
		return fmt.Errorf("read how the agent of %s ended: %w", r.Ref(), err)
	}
	if exit == nil {
		return s.lose(ctx, r, start)
	}
	if err := s.endRunner(ctx, r, start); err != nil {
		return err
	}
	return s.record(ctx, r.ID, r.Attempt.Number, start, exit)
}

// adoptFile is the launch for a wrapper that adopts an agent.
const adoptFile = "adopt.json"

// useWrapper records the wrapper that took the place of one that was killed.
func useWrapper(a *agency.Attempt, start *agency.Start) []agency.EventDraft {
	if start == nil || a.State != agency.Running || start.Wrapper.PID == 0 || a.Wrapper != nil && *a.Wrapper == start.Wrapper {
		return nil
	}
	a.Wrapper = &start.Wrapper
	if start.Pane != "" {
		a.Pane = start.Pane
	}
	return []agency.EventDraft{{Type: agency.WrapperReplaced, Data: map[string]any{"pid": start.Wrapper.PID}}}
}
