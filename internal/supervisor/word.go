package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"time"

	"agency"
	"agency/internal/file"
)

// fileStamp tells two contents of a file apart without reading them.
type fileStamp struct {
	size, mtime int64
}

func stampOf(path string) fileStamp {
	info, err := os.Lstat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime().UnixNano()}
}

// rescan finds what no event told of: contracts that changed, folders that were made anew, wrappers that are gone. It also
// refreshes the heartbeat in the views.
func (s *Supervisor) rescan() {
	s.mu.Lock()
	runs := make([]liveRun, 0, len(s.live))
	for _, l := range s.live {
		runs = append(runs, *l)
	}
	s.mu.Unlock()
	// One question for all: a thousand questions take a hundred times as long.
	records, err := s.Store.Runs(s.ctx, agency.Filter{Live: true})
	if err != nil {
		s.Log.Error("look at runs again", "err", err)
		return
	}
	byID := make(map[agency.RunID]*agency.Run, len(records))
	for i := range records {
		byID[records[i].ID] = &records[i]
	}
	for i := range runs {
		l := &runs[i]
		r := byID[l.id]
		if r == nil || r.Attempt.Number != l.attempt {
			continue // it ended meanwhile
		}
		s.watchAgain(l.id, filepath.Join(l.worktree, agency.StateDir))
		s.lookAgain(l, r)
		if l.link == nil && r.Attempt.State == agency.Running {
			if _, err := s.settle(s.ctx, r); err != nil {
				s.Log.Error("look at run again", "run", l.id, "err", err)
				continue
			}
			if r, err = s.Store.Run(s.ctx, l.id); err != nil {
				continue
			}
		}
		if stamp := stampOf(filepath.Join(l.dir, "meta.json")); stamp != l.snapshot {
			s.checkRecord(r)
			s.mu.Lock()
			if now := s.live[l.id]; now != nil {
				now.snapshot = stamp
			}
			s.mu.Unlock()
		}
		s.writeState(r)
	}
	s.lookForSessions()
}

// lookForSessions finds live runs of which nothing can be seen: no wrapper is connected, and the tmux session is gone.
func (s *Supervisor) lookForSessions() {
	s.mu.Lock()
	alone := slices.ContainsFunc(slices.Collect(maps.Values(s.live)), func(l *liveRun) bool { return l.link == nil })
	s.mu.Unlock()
	if !alone {
		return
	}
	sessions, err := s.Tmux.Sessions(s.ctx)
	if err != nil {
		s.Log.Warn("list sessions", "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.live {
		l.unseen = l.link == nil && !slices.Contains(sessions, agency.SessionPrefix+string(id))
	}
}

// lookAgain reads what an agent wrote and no event told of. Before an attempt has begun its worktree holds the words of the
// attempt before.
func (s *Supervisor) lookAgain(l *liveRun, r *agency.Run) {
	if r.Attempt.State == agency.Queued {
		return
	}
	if stampOf(filepath.Join(l.worktree, agency.ContractFile)) != l.stamp {
		s.readWord(s.ctx, l.id)
	}
	s.readReports(s.ctx, l.id)
	if s.evidenceWaits(l) {
		s.readEvidence(s.ctx, l.id)
	}
	s.followFiles(l.id, r.Runner.Kind, l.situation, r.Attempt.RunnerProcess)
	for _, path := range s.Harness.Files(r.Runner.Kind, l.situation, r.Attempt.RunnerProcess) {
		s.follow(s.ctx, l.id, path)
	}
}

// readWord brings the runner's contract file into the record when it says something new. It never fails: what cannot be
// read is itself the news.
func (s *Supervisor) readWord(ctx context.Context, id agency.RunID) {
	// One at a time: an older reading must not be written over a newer one.
	unlock, err := s.locks.lock(ctx, "word "+string(id))
	if err != nil {
		return
	}
	defer unlock()
	s.mu.Lock()
	l := s.live[id]
	if l == nil {
		s.mu.Unlock()
		return
	}
	worktree, attempt := l.worktree, l.attempt
	l.stamp = stampOf(filepath.Join(worktree, agency.ContractFile))
	s.mu.Unlock()

	word := s.observeWord(worktree)
	// The file is exchanged in this moment, or a writer that does not exchange it is in the middle of it.
	for wait := time.Millisecond; word.Problem != "" && wait < 100*time.Millisecond; wait *= 4 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		word = s.observeWord(worktree)
	}
	s.offered(ctx, id, word)
	_, err = s.Store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.News, error) {
		a := &r.Attempt
		if a.Number != attempt || a.State.Final() || sameWord(a.Word, word) {
			return nil, nil
		}
		word.At = observedAt(filepath.Join(worktree, agency.ContractFile), a.CreatedAt, word.At)
		a.Word = word
		data := map[string]any{"problem": word.Problem}
		if word.Contract != nil {
			data["status"], data["summary"] = word.Contract.Status, word.Contract.Summary
		}
		return []agency.News{{Type: agency.ContractChanged, Data: data}}, nil
	})
	if err != nil && ctx.Err() == nil {
		s.Log.Error("record contract", "run", id, "err", err)
	}
}

// changeTime is when a file's content or name last changed, by the kernel's clock; zero when there is no such file.
func changeTime(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return ctime(stat)
	}
	return time.Time{}
}

func (s *Supervisor) observeWord(worktree string) agency.Observed {
	word := agency.Observed{At: s.Now()}
	data, err := file.ReadBeneath(worktree, agency.ContractFile, agency.ContractLimit)
	if err == nil {
		var c agency.Contract
		if c, err = agency.ParseContract(data); err == nil {
			word.Contract = &c
			return word
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		word.Problem = whyUnreadable(err)
	}
	return word
}

// whyUnreadable says in a few words why a file in a worktree is not read; its path would take all the room there is.
func whyUnreadable(err error) string {
	var path *fs.PathError
	switch {
	case errors.Is(err, file.ErrNotRegular):
		return file.ErrNotRegular.Error()
	case errors.Is(err, file.ErrTooLarge):
		return file.ErrTooLarge.Error()
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}

func sameWord(a, b agency.Observed) bool {
	return a.Problem == b.Problem && reflect.DeepEqual(a.Contract, b.Contract)
}
