package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"agency"
	"agency/internal/file"
)

// checkRecord compares a run's record with its snapshot, meta.json, and remembers what is wrong. A list of runs tells what
// is remembered: to read the snapshots of thousands of runs would take longer than the list.
func (s *Supervisor) checkRecord(r *agency.Run) {
	problem := recordProblem(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem == "" {
		delete(s.broken, r.ID)
		return
	}
	s.broken[r.ID] = problem
}

// recordProblem says how a run's snapshot disagrees with its record; empty when it does not. A snapshot that is missing is
// written with the next change.
func recordProblem(r *agency.Run) string {
	const limit = 1 << 20
	if r.RemovedAt != nil {
		return ""
	}
	data, err := file.ReadRegular(filepath.Join(r.Dir, "meta.json"), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	var snapshot struct {
		ID agency.RunID `json:"id"`
	}
	switch {
	case err != nil:
		return "meta.json cannot be read"
	case json.Unmarshal(data, &snapshot) != nil:
		return "meta.json is damaged"
	case snapshot.ID != r.ID:
		return "meta.json is of another run"
	default:
		return ""
	}
}

// readSnapshot compares the snapshot of a live run with its record when the snapshot changed since that was done.
func (s *Supervisor) readSnapshot(ctx context.Context, id agency.RunID) {
	l, ok := s.liveCopy(id)
	if !ok {
		return
	}
	stamp := stampOf(filepath.Join(l.dir, "meta.json"))
	if stamp == l.snapshot {
		return
	}
	r, err := s.Records.Run(ctx, id)
	if err != nil {
		return // the rescan tries again
	}
	s.checkRecord(r)
	s.remember(&l, func(now *liveRun) { now.snapshot = stamp })
}

// checkRecords looks at all runs that were not removed, and writes what an earlier daemon could not.
func (s *Supervisor) checkRecords() {
	runs, err := s.Records.Runs(s.ctx, agency.Filter{})
	if err != nil {
		if s.ctx.Err() == nil {
			s.Log.Error("read runs", "err", err)
		}
		return
	}
	for i := range runs {
		if s.ctx.Err() != nil {
			return
		}
		if isBehind(&runs[i]) {
			s.writeViews(s.ctx, &runs[i])
		}
		s.checkRecord(&runs[i])
	}
}
