package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/service"
	"agency/internal/supervisor/keyed"
	"agency/internal/supervisor/observe"
)

// settler makes the record agree with what is true on this host, and ends what has to end:
// processes, sessions, failed starts.
//
// Locks are taken in this order: that of a run (Records), "undo" of it, that of its session, and
// then those of a repository, of the files that mirror the record, and of the parts below.
type settler struct {
	store    *Records
	live     *Live
	observer *observe.Observer
	repos    *Repos
	work     *Work
	views    *views
	git      Git
	tmux     Tmux
	attempts Attempts
	wrapper  []string // argv that begins a wrapper
	log      *slog.Logger
	now      func() time.Time

	sessions   *sessionEnder
	containers *containers

	life  *life
	locks keyed.Locks // serialises the ends of one run
}

// life is the time from Start to Stop.
type life struct {
	service.Background
	ctx context.Context // ends with Stop
}

// record writes a start and an end into the record, in that order. It is idempotent and leaves a
// final attempt as it is.
func (s *settler) record(ctx context.Context, id agency.RunID, attempt int, start *agency.Start, exit *agency.Exit) error {
	var started, ended bool
	if exit != nil {
		// The agent's last evidence may have come with its end.
		if err := s.observer.Finish(ctx, id); err != nil {
			return err
		}
		s.importBeforeEnd(ctx, id)
	}
	if start == nil && exit != nil && exit.EndedBy != agency.EndedByStartFailed {
		// The runner did run: a full disk may have refused the record of its start.
		start = &agency.Start{StartedAt: exit.StartedAt, Runner: agency.Process{PID: exit.PID}}
	}
	r, err := s.store.fact(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		var drafts []agency.EventDraft
		started, ended = false, false
		a := &r.Attempt
		if a.Number != attempt || a.State.Final() {
			return nil, nil
		}
		if start != nil && a.State == agency.Queued {
			var err error
			if drafts, err = applyStart(a, start); err != nil {
				return nil, err
			}
			started = true
		}
		drafts = append(drafts, useWrapper(a, start)...)
		if exit == nil {
			return drafts, nil
		}
		drafts = append(drafts, useNetwork(a, exit.Network)...)
		drafts = append(drafts, useLimits(a, exit.Limits)...)
		end, err := applyExit(a, exit)
		if err != nil {
			return nil, err
		}
		s.observer.Keep(id, a)
		ended = true
		return append(drafts, end), nil
	})
	if err != nil {
		return fmt.Errorf("record the state of %s: %w", id, err)
	}
	if started || ended {
		s.views.write(ctx, r)
	}
	if started && !ended {
		s.observer.WatchAgent(r)
	}
	if ended {
		s.sessions.afterStop(r)
		s.containers.removeSoon(r)
	}
	switch {
	case r.Attempt.Number != attempt || r.Attempt.State.Final():
		s.forget(r, attempt) // even when another goroutine was faster
	case started:
		s.live.moved(id)
	}
	return nil
}

// importBeforeEnd brings the commits of an agent in a sandbox into the repository before its
// attempt is recorded as ended. When that fails, the next look at the run tries again.
func (s *settler) importBeforeEnd(ctx context.Context, id agency.RunID) {
	r, err := s.store.Run(ctx, id)
	if err == nil && r.Sandbox.Level.Confines() && !r.Attempt.State.Final() {
		_, err = s.repos.Of(ctx, r)
	}
	if err != nil {
		s.log.Warn("import the commits of a sandbox", "run", id, "err", err)
	}
}

// applyStart copies a start record into an attempt, which then counts as running.
func applyStart(a *agency.Attempt, start *agency.Start) ([]agency.EventDraft, error) {
	state, err := agency.Next(a.State, agency.Fact{Kind: agency.FactStarted})
	if err != nil {
		return nil, err
	}
	a.State, a.StartedAt, a.RunnerProcess, a.Pane = state, &start.StartedAt, &start.Runner, start.Pane
	if start.Wrapper.PID != 0 {
		a.Wrapper = &start.Wrapper
	}
	useLimits(a, start.Limits)
	if start.Ports != nil {
		a.Ports = start.Ports
	}
	return []agency.EventDraft{
		agency.StepDone(stepSession), agency.StepDone(stepStarted),
		{Type: agency.AttemptStarted, Data: map[string]any{"pid": start.Runner.PID, "tty": start.TTY}},
	}, nil
}

// applyExit settles an attempt with its exit record.
func applyExit(a *agency.Attempt, exit *agency.Exit) (agency.EventDraft, error) {
	fact := exit.Fact(a.StopRequestedAt != nil)
	if a.State == agency.Queued {
		fact.Kind = agency.FactStartFailed
	}
	state, err := agency.Next(a.State, fact)
	if err != nil {
		return agency.EventDraft{}, err
	}
	ended := exit.EndedAt
	if a.StartedAt != nil && ended.Before(*a.StartedAt) {
		ended = *a.StartedAt // the clock was set back meanwhile
	}
	a.State, a.EndedAt, a.EndedBy, a.Signal = state, &ended, exit.EndedBy, exit.Signal
	a.LogLost = exit.LogLost
	if exit.Signal == "" {
		a.ExitCode = &exit.ExitCode
	}
	// Agency itself ended the session, and recorded the reason before.
	ours := a.ErrorCode != "" && exit.EndedBy == agency.EndedBySessionLost
	switch {
	case ours && state == agency.Failed:
		a.EndedBy = agency.EndedByStartFailed
	case state == agency.Failed:
		a.ErrorCode, a.Error = exit.Failure()
	default:
		a.ErrorCode, a.Error = "", ""
	}
	return endDraft(a), nil
}

func endDraft(a *agency.Attempt) agency.EventDraft {
	return agency.EventDraft{Type: agency.AttemptEnded, Data: map[string]any{
		"state": a.State, "exit_code": a.ExitCode, "signal": a.Signal, "ended_by": a.EndedBy, "error_code": a.ErrorCode, "error": a.Error,
	}}
}

// settle makes the record of one run agree with what is true on this host, whatever happened while
// no daemon ran. A live wrapper is awaited, unless it only waits to report its exit; without a
// wrapper the exit record decides; without either the attempt is lost. alive reports whether a
// wrapper lives. It is deterministic and idempotent.
func (s *settler) settle(ctx context.Context, r *agency.Run) (alive bool, err error) {
	if r.Attempt.State.Final() {
		s.forget(r, r.Attempt.Number)
		return false, nil
	}
	locked, start, exit, err := s.seen(r)
	if err == nil && !locked && start == nil && exit == nil && r.Attempt.State == agency.Queued {
		killpoint.At("settle.unseen")
		// A starting wrapper takes its lock first and then the launch file, without which it does
		// not start the runner. So either it never will, or it is visible now.
		if err = removeLaunch(r); err == nil {
			locked, start, exit, err = s.seen(r)
		}
	}
	if err != nil {
		return false, err
	}
	s.track(r) // also for the last report that an agent wrote while no daemon ran
	switch a := &r.Attempt; {
	case a.ErrorCode != "" && (exit == nil || exit.EndedBy == agency.EndedBySessionLost):
		// Agency was about to end it.
		return false, s.takeBack(ctx, r, agency.Errorf(a.ErrorCode, "%s", a.Error))
	case locked && s.onlyWaits(start, exit):
		// The wrapper ends when it learns that the attempt has ended.
		return false, s.record(ctx, r.ID, r.Attempt.Number, start, exit)
	case locked && a.State == agency.Running:
		return true, nil // its start is in the record, and its end is not yet due
	case locked:
		// Even with an exit record: the wrapper may still be ending what the runner left behind.
		return true, s.record(ctx, r.ID, r.Attempt.Number, start, nil)
	case exit != nil:
		// The wrapper may have been killed after it wrote the record and before it ended what the
		// runner left.
		if err := s.endRunner(ctx, r, start); err != nil {
			return false, err
		}
		if err := s.record(ctx, r.ID, r.Attempt.Number, start, exit); err != nil {
			return false, err
		}
		return false, s.undoUnstarted(ctx, r.ID)
	case a.State == agency.Queued && start == nil && a.Number > 1:
		return false, s.takeBack(ctx, r, agency.Errorf(agency.CodeStartCutOff, "the start of the attempt was cut off"))
	case a.State == agency.Queued && start == nil:
		return false, s.takeBack(ctx, r, agency.Errorf(agency.CodeStartCutOff, "the creation of the run was cut off"))
	case s.outlived(r, start):
		return s.replaceWrapper(ctx, r, start)
	default:
		return false, s.lose(ctx, r, start)
	}
}

// seen returns what an attempt's wrapper left on this host. The lock is checked first, because a
// wrapper writes its exit record before it releases the lock. A record with wrong content counts as
// missing. A record that the system fails to read does not: seen returns the error, and the caller
// tries again.
func (s *settler) seen(r *agency.Run) (locked bool, start *agency.Start, exit *agency.Exit, err error) {
	dir := observe.AttemptDir(r.Dir, r.Attempt.Number)
	if locked, err = s.attempts.Locked(dir); err != nil {
		return locked, nil, nil, fmt.Errorf("look at the lock of %s: %w", r.Ref(), err)
	}
	start, startErr := s.attempts.ReadStart(dir)
	exit, exitErr := s.attempts.ReadExit(dir)
	err = errors.Join(startErr, exitErr)
	if _, failed := errors.AsType[syscall.Errno](err); failed {
		return locked, nil, nil, agency.Errorf(agency.CodeCleanupFailed, "read how attempt %d of %s began and ended: %w", r.Attempt.Number, r.Ref(), err).
			WithHint("agency tries again; if the disk has lost the file, delete it, and the attempt counts as lost")
	}
	if err != nil {
		s.log.Warn("read attempt records", "run", r.ID, "err", err)
	}
	return locked, start, exit, nil
}

// takeBack settles an attempt that is not to start: it undoes a creation, and fails a later
// attempt. It continues what was begun before.
func (s *settler) takeBack(ctx context.Context, r *agency.Run, why error) error {
	if r.Attempt.Number > 1 || agency.IsCode(why, agency.CodeSetupFailed) {
		return s.fail(ctx, r, why)
	}
	return s.undo(ctx, r, why)
}

// intendEnd records why agency ends a start, before it ends anything, so that the reports of the
// wrapper and of the next daemon do not blame another process. When the disk is full, the end comes
// first. When this daemon can record nothing more, because it writes its record back and ends,
// intendEnd returns an error: nothing must be ended, and the next daemon settles the attempt.
func (s *settler) intendEnd(ctx context.Context, r *agency.Run, why error) error {
	reason, number := agency.AsError(why), r.Attempt.Number
	_, err := s.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		if a := &r.Attempt; a.Number == number && !a.State.Final() {
			a.ErrorCode, a.Error = reason.Code, reason.Message
		}
		return nil, nil
	})
	if agency.IsCode(err, agency.CodeDaemonConnectFailed) || agency.IsCode(err, agency.CodeDBMissing) {
		return err
	}
	if err != nil {
		s.log.Warn("record why a start is taken back", "run", r.ID, "err", err)
	}
	killpoint.At("undo.intended")
	return nil
}

// leave returns the error for a start that failed. undone is the error of taking it back, or nil. The
// client must not request the start again when the next daemon may complete it.
func leave(r *agency.Run, why, undone error) error {
	if !agency.IsCode(undone, agency.CodeDaemonConnectFailed) {
		return errors.Join(why, undone)
	}
	return agency.Errorf(agency.CodeDaemonLost, "the daemon restarts before %s has started; the next one completes the start or undoes it: %w", r.Ref(), why).
		WithHint("see what became of it: agency show %s", r.Ref())
}

// onlyWaits reports whether a live wrapper only has to report its exit: its runner has ended and
// left nothing to end.
func (s *settler) onlyWaits(start *agency.Start, exit *agency.Exit) bool {
	switch {
	case exit == nil || exit.EndedBy == agency.EndedByStartFailed:
		return false // an attempt that never started needs more undone than its record
	case exit.EndedBy == agency.EndedByRunner && exit.LeftBehind == 0:
		return true
	default:
		return start != nil && s.attempts.Alone(start.Wrapper)
	}
}

// lose settles an attempt whose wrapper died without an exit record. It first ends the runner that
// the wrapper left, so that no agent works on after its end is in the record.
func (s *settler) lose(ctx context.Context, r *agency.Run, start *agency.Start) error {
	return s.loseFor(ctx, r, start, "the runner disappeared")
}

// loseFor is lose with the reason for the record.
func (s *settler) loseFor(ctx context.Context, r *agency.Run, start *agency.Start, why string) error {
	if err := s.endRunner(ctx, r, start); err != nil {
		return err
	}
	killpoint.At("settle.ended")
	if err := s.observer.Finish(ctx, r.ID); err != nil {
		return err
	}
	s.importBeforeEnd(ctx, r.ID)
	settled, changed, err := s.recordLost(ctx, r, func(a *agency.Attempt, was agency.State) {
		if was == agency.Queued && start != nil {
			a.StartedAt, a.Wrapper, a.RunnerProcess, a.Limits, a.Ports = &start.StartedAt, &start.Wrapper, &start.Runner, start.Limits, start.Ports
		}
		s.observer.Keep(r.ID, a)
		if a.State == agency.Failed {
			a.ErrorCode, a.Error = agency.CodeRunnerDisappeared, why
		}
	})
	if err != nil {
		return fmt.Errorf("record the loss of %s: %w", r.Ref(), err)
	}
	killpoint.At("settle.recorded")
	if changed {
		s.views.write(ctx, settled)
		s.sessions.afterStop(settled)
		s.containers.removeSoon(settled)
	}
	s.forget(settled, r.Attempt.Number)
	return nil
}

// recordLost records the end of an attempt that left no exit record, as edit completes it from the
// state before. changed is false when the attempt has ended already, or is not the newest one.
func (s *settler) recordLost(ctx context.Context, r *agency.Run, edit func(a *agency.Attempt, was agency.State)) (lost *agency.Run, changed bool, err error) {
	number := r.Attempt.Number
	lost, err = s.store.fact(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		a := &r.Attempt
		changed = false
		if a.Number != number || a.State.Final() {
			return nil, nil
		}
		state, err := agency.Next(a.State, agency.Fact{Kind: agency.FactLost, StopRequested: a.StopRequestedAt != nil})
		if err != nil {
			return nil, err
		}
		now, was := s.now(), a.State
		a.State, a.EndedAt = state, &now
		edit(a, was)
		changed = true
		return []agency.EventDraft{endDraft(a)}, nil
	})
	return lost, changed, err
}

// endRunner ends what a killed wrapper left running of an attempt.
func (s *settler) endRunner(ctx context.Context, r *agency.Run, start *agency.Start) error {
	var wrapper, root agency.Process
	if start != nil {
		wrapper, root = start.Wrapper, start.Runner
	} else {
		if r.Attempt.Wrapper != nil {
			wrapper = *r.Attempt.Wrapper
		}
		if r.Attempt.RunnerProcess != nil {
			root = *r.Attempt.RunnerProcess
		}
	}
	if err := s.endLeftovers(ctx, r, wrapper, root, agency.AttemptMark(r.ID, r.Attempt.Number)); err != nil {
		return err
	}
	killpoint.At("settle.unlimit")
	if err := s.attempts.Unlimit(observe.AttemptDir(r.Dir, r.Attempt.Number), r.ID, r.Attempt.Number); err != nil {
		s.log.Warn("remove what limited an attempt", "run", r.ID, "err", err) // the removal of the run tries again
	}
	return nil
}

// endLeftovers ends a process and all processes that carry the mark, when the wrapper is gone. It
// fails when some remain.
func (s *settler) endLeftovers(ctx context.Context, r *agency.Run, wrapper, root agency.Process, mark []string) error {
	left, err := s.attempts.EndTree(ctx, wrapper, root, mark, 2*time.Second)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d processes do not end", left)
	}
	if err != nil {
		return fmt.Errorf("end what is left of %s: %w", r.Ref(), err)
	}
	return nil
}

// settleWhenDead settles a run whose wrapper's connection ended, once it is clear whether the
// wrapper lives. A dying process closes its connection a moment before it releases its lock. A
// start that is being taken back is taken back whether or not its wrapper is connected. It looks
// for the first time after wait.
func (s *settler) settleWhenDead(id agency.RunID, wait time.Duration) {
	for ; ; wait = min(2*wait, time.Second) {
		select {
		case <-time.After(wait):
		case <-s.life.ctx.Done():
			return
		}
		r, err := s.store.Run(s.life.ctx, id)
		if err == nil && s.live.link(id) != nil && (r.Attempt.State.Final() || r.Attempt.ErrorCode == "") {
			return
		}
		if err == nil {
			var alive bool
			if alive, err = s.settle(s.life.ctx, r); err == nil && !alive {
				return
			}
		}
		if err != nil && s.life.ctx.Err() == nil {
			s.log.Error("settle run", "run", id, "err", err)
		}
	}
}

// How long to wait before the first look at a wrapper without a connection: one that has just lost
// it may be dying, and one that lived when the daemon started tries to connect four times a second.
const (
	soon      = 5 * time.Millisecond
	reconnect = 300 * time.Millisecond
)

// adopt settles a run that an earlier daemon left live, and decides whether its start continues.
func (s *settler) adopt(ctx context.Context, r *agency.Run) (alive bool, err error) {
	alive, err = s.settle(ctx, r)
	if alive && err == nil && r.Attempt.State == agency.Queued {
		alive, err = s.continueStart(ctx, r)
	}
	return alive, err
}

// adoptLater repeats what the start of the daemon could not do for a run, until it can.
func (s *settler) adoptLater(id agency.RunID) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Minute) {
		select {
		case <-time.After(wait):
		case <-s.life.ctx.Done():
			return
		}
		alive := false
		r, err := s.store.Run(s.life.ctx, id)
		if err == nil {
			alive, err = s.adopt(s.life.ctx, r)
		}
		if err == nil {
			err = s.undoUnstarted(s.life.ctx, id)
		}
		switch {
		case err == nil && alive:
			s.settleWhenDead(id, soon)
			return
		case err == nil:
			return
		case s.life.ctx.Err() == nil:
			s.log.Error("settle run", "run", id, "err", err)
		}
	}
}

// continueStart decides on a wrapper that may wait to be let go, because the daemon that started it
// ended: it may start its runner if the worktree is prepared, and otherwise the creation is undone.
// A record that was rebuilt does not know the token of such a wrapper, so the creation is undone then
// too.
func (s *settler) continueStart(ctx context.Context, r *agency.Run) (alive bool, err error) {
	now, err := s.store.Run(ctx, r.ID)
	if err != nil || now.Attempt.State != agency.Queued || now.Attempt.Number > 1 {
		return err == nil, err
	}
	prepared, _, err := s.prepared(ctx, now)
	switch {
	case err != nil:
		return false, err
	case prepared:
		s.live.letGo(s.life.ctx, r.ID)
		return true, nil
	default:
		return false, s.takeBack(ctx, now, agency.Errorf(agency.CodeStartCutOff, "the creation of the run was cut off"))
	}
}

// prepared reports whether the record has the worktree of a run as prepared for its agent. A record
// that was rebuilt from a run's folder has no steps: any may be done.
func (s *settler) prepared(ctx context.Context, r *agency.Run) (prepared, rebuilt bool, err error) {
	steps, err := s.store.Steps(ctx, r.ID, 1)
	for _, step := range steps {
		if step.Name == stepScaffold {
			return step.DoneAt != nil, false, err
		}
	}
	return false, len(steps) == 0, err
}

// undoUnstarted undoes the creation of a run whose runner could not be started, unless that is
// done. The caller of the creation does so too, but may have ended with an earlier daemon.
func (s *settler) undoUnstarted(ctx context.Context, id agency.RunID) error {
	r, err := s.store.Run(ctx, id)
	if err != nil {
		return err
	}
	a := &r.Attempt
	if r.RemovedAt != nil || a.Number > 1 || a.State != agency.Failed || a.EndedBy != agency.EndedByStartFailed {
		return nil
	}
	return s.undo(ctx, r, agency.Errorf(a.ErrorCode, "%s", a.Error))
}

// track tracks and watches an attempt that has not ended.
func (s *settler) track(r *agency.Run) {
	s.observer.Track(r)
	s.live.track(r)
}

// forget stops watching an attempt that is over. A later attempt of the same run stays watched.
func (s *settler) forget(r *agency.Run, attempt int) {
	s.live.forget(r.ID, attempt)
	s.observer.Forget(r, attempt)
}
