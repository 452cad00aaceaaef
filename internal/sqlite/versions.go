package sqlite

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"agency"
)

// version is a state of one run: every change of it gives it a later time, so that the pair never
// means two things.
type version struct{ seq, updated int64 }

// memory keeps runs that were read, since most runs of a list have not changed since the last one.
// A version cannot be stale: it is read from the database each time.
type memory struct {
	mu   sync.Mutex
	runs map[int64]*agency.Run // by seq; they are never changed, only replaced
}

// memoryLimit is how many runs are kept, of about 2 KB each.
const memoryLimit = 12_000

// recall fills in the runs whose versions are known and returns the seqs of the others.
func (m *memory) recall(versions []version, runs []*agency.Run) (missing []int64) {
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
		m.runs = make(map[int64]*agency.Run, len(runs))
	}
	for i := range runs {
		m.runs[runs[i].Seq] = &runs[i]
	}
}

// runsOf returns the runs with these versions, which are in the order of seq, or with later ones.
// They are shared: do not write to them.
func (s *runs) runsOf(ctx context.Context, versions []version) ([]*agency.Run, error) {
	runs := make([]*agency.Run, len(versions))
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
			runs[i], read = &read[0], read[1:]
		}
	}
	return slices.DeleteFunc(runs, func(r *agency.Run) bool { return r == nil }), nil
}

// lists keeps the answers to the newest queries for runs. They are valid until the next commit,
// whatever it writes.
type lists struct {
	mu   sync.Mutex
	at   uint64 // the count of commits that they belong to
	kept map[agency.Filter][]*agency.Run
}

// mostLists is how many answers are kept.
const mostLists = 8

// recall returns the answer to a filter as of a count of commits, if it is known. During a commit
// no answer is known: a reader may already see what the commit wrote.
func (l *lists) recall(f agency.Filter, now uint64) ([]*agency.Run, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs, ok := l.kept[f]
	return runs, ok && l.at == now && !committing(now)
}

// keep keeps an answer to a filter that was asked for when the count of commits was now.
func (l *lists) keep(f agency.Filter, now uint64, runs []*agency.Run) {
	if committing(now) || len(runs) > memoryLimit {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != now || l.kept == nil || len(l.kept) >= mostLists {
		l.at, l.kept = now, map[agency.Filter][]*agency.Run{}
	}
	l.kept[f] = runs
}

// committing reports whether a commit was in progress at a count of commits: each commit is counted
// before and after.
func committing(count uint64) bool { return count%2 == 1 }
