package sqlite

import (
	"context"
	"encoding/json"
	"sync"

	"agency"
)

// version is a state of one run: every change of it gives it a later time, so that the pair never
// means two things.
type version struct{ seq, updated int64 }

// memory keeps runs that were read, since most of a list is as it was at the last look. A version
// cannot be stale: it is asked from the database each time.
type memory struct {
	mu   sync.Mutex
	runs map[int64]agency.Run // by seq
}

// memoryLimit is how many runs are kept, of about 2 KB each.
const memoryLimit = 12_000

// recall fills in the runs whose versions are known and returns the seqs of the others.
func (m *memory) recall(versions []version, runs []agency.Run) (missing []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, v := range versions {
		if r, ok := m.runs[v.seq]; ok && r.UpdatedAt.UnixMilli() == v.updated {
			runs[i] = r
		} else {
			missing = append(missing, v.seq)
		}
	}
	return missing
}

func (m *memory) keep(runs []agency.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.runs)+len(runs) > memoryLimit {
		m.runs = nil
		runs = runs[max(0, len(runs)-memoryLimit):]
	}
	if m.runs == nil {
		m.runs = make(map[int64]agency.Run, len(runs))
	}
	for i := range runs {
		m.runs[runs[i].Seq] = runs[i]
	}
}

// runsOf returns the runs with these versions, which are in the order of seq, or with later ones.
func (s *runs) runsOf(ctx context.Context, versions []version) ([]agency.Run, error) {
	runs := make([]agency.Run, len(versions))
	missing := s.db.memory.recall(versions, runs)
	if len(missing) == 0 {
		return runs, nil
	}
	seqs, err := json.Marshal(missing)
	if err != nil {
		return nil, err
	}
	read, err := s.queryRuns(ctx, selectRuns+`WHERE r.seq IN (SELECT value FROM json_each(?)) ORDER BY r.seq`, string(seqs))
	if err != nil {
		return nil, err
	}
	s.db.memory.keep(read)
	for i := range runs {
		if len(read) > 0 && read[0].Seq == versions[i].seq {
			runs[i], read = read[0], read[1:]
		}
	}
	return runs, nil
}
