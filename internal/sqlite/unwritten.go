package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"agency"
)

// unwritten holds the states of runs' newest attempts that could not be written. Readers get them
// instead of the record.
type unwritten struct {
	turn  sync.Mutex // held during a change of a run
	mu    sync.Mutex // guards facts, which is replaced and never changed
	facts map[agency.RunID]fact
}

// fact is the state of an attempt, and its event.
type fact struct {
	attempt agency.Attempt
	drafts  []agency.EventDraft
}

func (u *unwritten) all() map[agency.RunID]fact {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.facts
}

// set keeps a fact of a run, or nothing when it is nil.
func (u *unwritten) set(id agency.RunID, f *fact) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.facts = maps.Clone(u.facts)
	switch {
	case f == nil:
		delete(u.facts, id)
	case u.facts == nil:
		u.facts = map[agency.RunID]fact{id: *f}
	default:
		u.facts[id] = *f
	}
}

// overlay replaces the recorded states of runs by facts. The facts are those from before the record
// was read: what was written meanwhile is in both then, and never in neither.
func overlay(facts map[agency.RunID]fact, runs []agency.Run) {
	for i := range runs {
		overlayRun(facts, &runs[i])
	}
}

func overlayRun(facts map[agency.RunID]fact, r *agency.Run) {
	if f, ok := facts[r.ID]; ok && f.attempt.Number == r.Attempt.Number {
		r.Attempt, r.Unrecorded = f.attempt, true
	}
}

// RecordFact is ChangeRun for a fact that is true even if it cannot be written. When the disk
// accepts no writes, the fact is kept in memory: all readers get it, Run.Unrecorded marks it, and
// it is written with the next change of the run or by WriteFacts. It is lost with this process.
func (s *runs) RecordFact(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	return s.changeRun(ctx, id, true, change)
}

// WriteFacts writes what RecordFact kept in memory, as far as the disk accepts it.
func (s *runs) WriteFacts(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(s.db.unwritten.all())) {
		r, err := s.RecordFact(ctx, id, func(*agency.Run) ([]agency.EventDraft, error) { return nil, nil })
		if err != nil || r.Unrecorded {
			return err
		}
	}
	return nil
}

// Full reports whether an error means that the disk accepts no writes: it is full, or fails.
func Full(err error) bool {
	sqlErr, ok := errors.AsType[*driver.Error](err)
	return ok && (sqlErr.Code()&0xff == codes.SQLITE_FULL || sqlErr.Code()&0xff == codes.SQLITE_IOERR)
}
