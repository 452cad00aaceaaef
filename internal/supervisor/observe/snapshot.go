package observe

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"agency"
	"agency/internal/file"
)

// CheckRecord compares a run's record with its snapshot, meta.json, and remembers the difference. A
// list of runs shows what is remembered: reading the snapshots of thousands of runs would take
// longer than the list.
func (ob *Observer) CheckRecord(r *agency.Run) {
	problem := recordProblem(r)
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if problem == "" {
		delete(ob.broken, r.ID)
		return
	}
	ob.broken[r.ID] = problem
}

// recordProblem returns how a run's snapshot differs from its record; empty when it does not. A
// missing snapshot is written with the next change.
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

// ReadSnapshot compares the snapshot of a live run with its record if the snapshot changed since
// the last comparison.
func (ob *Observer) ReadSnapshot(ctx context.Context, id agency.RunID) {
	l, ok := ob.copyOf(id)
	if !ok {
		return
	}
	stamp := stampOf(filepath.Join(l.dir, "meta.json"))
	if stamp == l.snapshot {
		return
	}
	r, err := ob.Store.Run(ctx, id)
	if err != nil {
		return // the rescan tries again
	}
	ob.CheckRecord(r)
	ob.change(&l, func(now *liveRun) { now.snapshot = stamp })
}
