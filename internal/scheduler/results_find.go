package scheduler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// found is the result of the work outside the loop for a session.
type found struct {
	session agency.SessionID
	agents  []string // those whose results are now in the record
	err     error
}

// begin starts the work outside the loop that determines the results of a session's agents whose
// runs have ended. After the last agent of a settled session, its report and notice follow. Until
// the work is over, the loop ignores the session.
func (r *Results) begin(ctx context.Context, o *outcome) error {
	if o.session.ID == "" {
		return nil
	}
	due := []*agency.SessionAgent{}
	for _, a := range o.open {
		ended := a.CompletedAt == nil || r.Now().Sub(*a.CompletedAt) >= endTimeout
		if !ended {
			var err error
			if ended, err = r.Ended(ctx, a.Run); err != nil {
				return err
			}
		}
		if ended {
			due = append(due, a)
		}
	}
	last := o.session.Status.Final() && len(due) == len(o.open)
	if !last && len(due) == 0 {
		return nil
	}
	o.busy = true
	session, agents, lastTry := &o.session, o.agents, o.unwritten+1 >= reportTries
	r.work.Go(func() {
		known, err := r.findOut(ctx, session.ID, due)
		if err == nil && last {
			err = r.finish(ctx, session, agents, lastTry)
		}
		select {
		case r.found <- found{session: session.ID, agents: known, err: err}:
		case <-ctx.Done():
		}
	})
	return nil
}

// take applies the result of that work.
func (r *Results) take(ctx context.Context, f *found) {
	o := r.sessions[f.session]
	if o == nil {
		return
	}
	o.busy = false
	for _, agent := range f.agents {
		o.known[agent] = true
	}
	o.lookOpen()
	if errors.Is(f.err, errUnwritten) {
		o.unwritten++
	}
	if f.err != nil {
		r.putOff(ctx, f.session, o, f.err)
		return
	}
	o.failures = 0
}

// findOut records the results of agents, and returns the agents whose results are recorded.
func (r *Results) findOut(ctx context.Context, id agency.SessionID, agents []*agency.SessionAgent) (known []string, err error) {
	var mu sync.Mutex
	var group errgroup.Group // a failure does not stop the others
	group.SetLimit(factsEachOnce)
	for _, a := range agents {
		group.Go(func() error {
			result, err := r.facts(ctx, a.Run)
			if err != nil {
				return err
			}
			if err := r.Store.AddResult(ctx, id, a.ID, &result); err != nil {
				return err
			}
			killpoint.At("results.found")
			mu.Lock()
			defer mu.Unlock()
			known = append(known, a.ID)
			return nil
		})
	}
	err = group.Wait()
	return known, err
}

func (r *Results) facts(ctx context.Context, id agency.RunID) (agency.AgentResult, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return agency.AgentResult{}, ctx.Err()
	}
	timed, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	result, err := r.Facts(timed, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return agency.AgentResult{Problem: fmt.Sprintf("git did not answer within %s", duration.Text(factsTime))}, nil
	}
	return result, err
}

// errUnwritten is the error of a session whose report could not be written.
var errUnwritten = errors.New("write the report")

// finish writes the report of a settled session and sends the notice. When the report cannot be
// written at the last try either, the notice is sent without it. A session that was removed
// meanwhile gets neither: its files are removed after its record, so a writer that then finds the
// record gone must remove its file again.
func (r *Results) finish(ctx context.Context, s *agency.Session, agents []agency.SessionAgent, lastTry bool) error {
	results, err := r.Store.SessionResults(ctx, s.ID)
	if err != nil {
		return err
	}
	if removed, err := r.removed(ctx, s.ID); removed || err != nil {
		return err
	}
	root, rel, err := place(s)
	if err == nil {
		err = file.WriteBeneath(root, filepath.Join(rel, filepath.Base(s.ReportPath())), Report(s, agents, results), 0o644)
	}
	written := err == nil
	switch {
	case written:
	case !lastTry:
		return fmt.Errorf("%w: %w", errUnwritten, err)
	default:
		r.Log.Warn("end session without its report", "session", s.ID, "err", err)
	}
	killpoint.At("results.written")
	switch removed, err := r.removed(ctx, s.ID); {
	case err != nil, removed && !written:
		return err
	case removed:
		return file.RemoveBeneath(root, rel)
	}
	// The watchdog reports everything that needs action (a pause, a waiting agent, a failure) as
	// alerts.
	if kind := noticeOf(s.Status); kind != "" {
		if err := r.Notify(ctx, s, kind, s.Ending(agents)); err != nil {
			return fmt.Errorf("report the end of session %s: %w", s.ID, err)
		}
	}
	killpoint.At("results.sent")
	return r.Store.ReportSession(ctx, s.ID)
}

func (r *Results) removed(ctx context.Context, id agency.SessionID) (bool, error) {
	_, err := r.Store.Session(ctx, id)
	if agency.IsCode(err, agency.CodeSessionNotFound) {
		return true, nil
	}
	return false, err
}

// noticeOf returns the kind of notice for a settled session; empty when it failed, which is an
// alert.
func noticeOf(s agency.SessionStatus) agency.NoticeKind {
	switch s {
	case agency.SessionComplete:
		return agency.NoticeComplete
	case agency.SessionCancelled:
		return agency.NoticeCancelled
	default:
		return ""
	}
}
