package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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
	for i := range runs {
		l := &runs[i]
		s.watchAgain(l)
		if stampOf(filepath.Join(l.worktree, agency.ContractFile)) != l.stamp {
			s.readWord(s.ctx, l.id)
		}
		r, err := s.Store.Run(s.ctx, l.id)
		if err == nil && l.link == nil && r.Attempt.State == agency.Running {
			_, err = s.settle(s.ctx, r)
		}
		if err != nil {
			s.Log.Error("look at run again", "run", l.id, "err", err)
			continue
		}
		s.writeState(r)
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

	word := s.observe(worktree)
	// The file is exchanged in this moment, or a writer that does not exchange it is in the middle of it.
	for wait := time.Millisecond; word.Problem != "" && wait < 100*time.Millisecond; wait *= 4 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		word = s.observe(worktree)
	}
	_, err = s.Store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.News, error) {
		a := &r.Attempt
		if a.Number != attempt || a.State.Final() || sameWord(a.Word, word) {
			return nil, nil
		}
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

func (s *Supervisor) observe(worktree string) agency.Observed {
	word := agency.Observed{At: s.Now()}
	data, err := s.ReadBeneath(worktree, agency.ContractFile, agency.ContractLimit)
	if err == nil {
		var c agency.Contract
		if c, err = agency.ParseContract(data); err == nil {
			word.Contract = &c
			return word
		}
	}
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, file.ErrNotRegular):
		word.Problem = file.ErrNotRegular.Error()
	case errors.Is(err, file.ErrTooLarge):
		word.Problem = file.ErrTooLarge.Error()
	case errors.As(err, &path):
		word.Problem = path.Err.Error() // the path would take all the room there is to say it
	default:
		word.Problem = err.Error()
	}
	return word
}

func sameWord(a, b agency.Observed) bool {
	return a.Problem == b.Problem && reflect.DeepEqual(a.Contract, b.Contract)
}
