package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"time"

	"agency"
)

// liveRun is what is known of a run that is not final and cannot be read from the record.
type liveRun struct {
	id         agency.RunID
	attempt    int
	worktree   string
	dir        string           // run directory
	link       Link             // nil while no wrapper is connected
	wrappers   []agency.Process // that proved to be the attempt's, of which one is it
	unseen     bool             // at the last look there was neither a link nor a tmux session
	lastOutput time.Time
	logLost    int64     // bytes that are missing in its log
	lastNews   time.Time // when its output last said something new
	beat       time.Time // when its wrapper last moved, as far as it was looked at
	silent     bool      // that was too long ago at the last look
	stamp      fileStamp // of the contract file when it was read last
	snapshot   fileStamp // of meta.json when it was last compared with the record
	reports    fileStamp // of the file of reports when it was taken over last
	folder     uint64    // inode of the folder that is watched for it; 0 while there is none
	// situation is what the evidence comes to, newer than the record's. It is never changed, only replaced.
	situation *agency.Situation
	look      *time.Timer       // reads the screen when the output has been still; nil until there was some
	screen    []agency.Evidence // what the screen said at the last look
	output    *outputReader
	views     int           // how often the files that mirror the record were written
	asked     bool          // a person asked for its end
	dark      bool          // its session was ended
	moved     chan struct{} // closed and replaced when the attempt's state or its link changes
}

// track makes the supervisor watch a run that is not final. What is read of an attempt may be older than the next one, which
// is watched then and stays so.
func (s *Supervisor) track(r *agency.Run) *liveRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trackLocked(r)
}

// trackLocked is track for a caller that holds the lock.
func (s *Supervisor) trackLocked(r *agency.Run) *liveRun {
	old := s.live[r.ID]
	if old != nil && old.attempt >= r.Attempt.Number {
		return old
	}
	if old != nil {
		old.end()
	}
	l := &liveRun{id: r.ID, attempt: r.Attempt.Number, worktree: r.Worktree, dir: r.Dir, situation: r.Attempt.Situation.Clone(), output: newOutputReader(r), moved: make(chan struct{})}
	if r.Attempt.Wrapper != nil {
		l.wrappers = []agency.Process{*r.Attempt.Wrapper}
	}
	s.live[r.ID] = l
	return l
}

// end tells those who wait for an attempt that it is no longer watched. The caller holds the lock.
func (l *liveRun) end() {
	close(l.moved)
	if l.look != nil {
		l.look.Stop()
	}
}

// forget ends the watching of an attempt that is over. A later one of the same run stays watched.
func (s *Supervisor) forget(r *agency.Run, attempt int) {
	s.mu.Lock()
	l := s.live[r.ID]
	later := l != nil && l.attempt > attempt
	if l != nil && !later {
		delete(s.live, r.ID)
		l.end()
	}
	s.mu.Unlock()
	if !later {
		s.unwatchAgent(r, attempt)
	}
}

// stateMoved tells those who wait for a run's state that it changed.
func (s *Supervisor) stateMoved(id agency.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[id]; l != nil {
		close(l.moved)
		l.moved = make(chan struct{})
	}
}

// awaitState waits until done says that the run is where the caller wants it, and returns the run.
func (s *Supervisor) awaitState(ctx context.Context, id agency.RunID, done func(*agency.Run) bool) (*agency.Run, error) {
	for {
		s.mu.Lock()
		var moved chan struct{}
		if l := s.live[id]; l != nil {
			moved = l.moved
		}
		s.mu.Unlock()
		r, err := s.Records.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		if done(r) || moved == nil {
			return r, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// Connect takes a wrapper's introduction. A wrapper of an older attempt, of a final one, or with another token is
// refused with E_PERMISSION_DENIED ("fenced"): it must not speak for the run. After other errors it may try again. An earlier link of the same attempt is
// closed. The caller reports every update with Update and the end of the connection with Disconnect.
func (s *Supervisor) Connect(ctx context.Context, hello agency.WrapperHello, link Link) error {
	r, err := s.Records.Run(ctx, hello.RunID)
	if err != nil {
		return err
	}
	hash, err := s.Records.TokenHash(ctx, hello.RunID, hello.Attempt)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(hash), []byte(agency.TokenHash(hello.Token))) != 1 || hello.Attempt != r.Attempt.Number {
		return agency.Errorf(agency.CodePermissionDenied, "attempt %d of %s is not the one that runs", hello.Attempt, r.Ref())
	}
	if r.Attempt.State.Final() {
		return refusal(r, hello.Attempt)
	}
	if r.Attempt.State == agency.Running {
		// Before anything changes here: when it fails the wrapper comes again.
		_, err := s.Records.fact(ctx, r.ID, func(r *agency.Run) ([]agency.News, error) {
			if r.Attempt.Number != hello.Attempt || r.Attempt.State.Final() {
				return nil, refusal(r, hello.Attempt)
			}
			return []agency.News{{Type: agency.WrapperAdopted}}, nil
		})
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	l := s.trackLocked(r)
	if l.attempt != hello.Attempt {
		s.mu.Unlock()
		return refusal(r, hello.Attempt)
	}
	old := l.link
	l.link, l.unseen = link, false
	if hello.Wrapper.PID != 0 && !slices.Contains(l.wrappers, hello.Wrapper) {
		l.wrappers = append(l.wrappers, hello.Wrapper)
	}
	close(l.moved)
	l.moved = make(chan struct{})
	s.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	if r.Attempt.State == agency.Running {
		s.watchAgent(r)
	}
	// Who recorded the end before the attempt was watched here has told nobody to forget it.
	switch now, err := s.Records.Run(ctx, r.ID); {
	case err != nil:
		s.Disconnect(r.ID, hello.Attempt, link)
		return err
	case now.Attempt.Number != hello.Attempt || now.Attempt.State.Final():
		s.forget(now, hello.Attempt)
		return refusal(now, hello.Attempt)
	case r.Attempt.State == agency.Running && r.Attempt.StopRequestedAt != nil:
		s.work.Go(func() { s.finishStop(r) })
	}
	return nil
}

// refusal is why the wrapper of an attempt that is over may not connect. One whose end is in memory alone may come again.
func refusal(r *agency.Run, attempt int) error {
	if r.Unrecorded && r.Attempt.Number == attempt && r.Attempt.State.Final() {
		return errUnrecorded(r)
	}
	return agency.Errorf(agency.CodePermissionDenied, "attempt %d of %s has ended", attempt, r.Ref())
}

// Update takes what a connected wrapper says. When it returns nil the news is in the record, or kept in memory and the wrapper's own record
// is on the disk, which the next daemon goes by.
func (s *Supervisor) Update(ctx context.Context, id agency.RunID, attempt int, u agency.WrapperUpdate) error {
	if u.Output != nil {
		s.mu.Lock()
		more := false
		if l := s.live[id]; l != nil && l.attempt == attempt {
			more = u.Output.After(l.lastOutput)
			l.lastOutput, l.logLost = *u.Output, u.LogLost
			if u.News != nil {
				l.lastNews = *u.News
			}
		}
		s.mu.Unlock()
		if more && u.Exit == nil { // how it ended says more than what it printed last
			s.readOutput(s.ctx, id)
		}
		s.lookSoon(id)
	}
	if u.Start == nil && u.Exit == nil {
		return nil
	}
	if err := s.record(ctx, id, attempt, u.Start, u.Exit); err != nil {
		return err
	}
	if u.Exit != nil {
		if err := s.keptOnDisk(ctx, id, attempt); err != nil {
			return err
		}
	}
	if u.Exit != nil && u.Exit.EndedBy == agency.EndedByStartFailed && attempt == 1 {
		// Not here: an undo waits for the wrapper's end, and the wrapper for its answer.
		s.work.Go(func() {
			if err := s.undoUnstarted(s.ctx, id); err != nil && s.ctx.Err() == nil {
				s.Log.Error("undo creation", "run", id, "err", err)
			}
		})
	}
	return nil
}

// keptOnDisk fails when the end of an attempt is in memory alone: its wrapper is to stay with its exit until the disk has it.
func (s *Supervisor) keptOnDisk(ctx context.Context, id agency.RunID, attempt int) error {
	r, err := s.Records.Run(ctx, id)
	if err != nil || !r.Unrecorded {
		return err
	}
	if exit, err := s.Attempts.ReadExit(attemptDir(r.Dir, attempt)); err != nil || exit == nil {
		return errors.Join(errUnrecorded(r), err)
	}
	return nil
}

func errUnrecorded(r *agency.Run) error {
	return agency.Errorf(agency.CodeDBError, "attempt %d of %s has ended, and the disk has no room for that", r.Attempt.Number, r.Ref())
}

// Disconnect tells that a wrapper's connection is gone. A wrapper that ended with it is settled now; one that lives
// connects again by itself.
func (s *Supervisor) Disconnect(id agency.RunID, attempt int, link Link) {
	s.mu.Lock()
	l := s.live[id]
	mine := l != nil && l.attempt == attempt && l.link == link
	if mine {
		l.link = nil
	}
	s.mu.Unlock()
	if !mine || s.ctx.Err() != nil {
		return
	}
	s.work.Go(func() { s.settleWhenDead(id) })
}

// adoptTimeout is how long a command waits for a wrapper that is not connected. One that lives tries four times a second.
const adoptTimeout = 3 * time.Second

// awaitLink is the link to a run's wrapper. After a start of the daemon it waits for the wrapper to connect again; it is nil
// when none does.
func (s *Supervisor) awaitLink(ctx context.Context, id agency.RunID) Link {
	timeout := time.After(adoptTimeout)
	for {
		s.mu.Lock()
		l := s.live[id]
		var link Link
		var moved chan struct{}
		if l != nil {
			link, moved = l.link, l.moved
		}
		s.mu.Unlock()
		if link != nil || moved == nil {
			return link
		}
		select {
		case <-moved:
		case <-timeout:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// watched is what is known of the attempt that r has; nil when that is over.
func (s *Supervisor) watched(r *agency.Run) *liveRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[r.ID]; l != nil && l.attempt == r.Attempt.Number {
		return l
	}
	return nil
}

func (s *Supervisor) linkOf(id agency.RunID) Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[id]; l != nil {
		return l.link
	}
	return nil
}
