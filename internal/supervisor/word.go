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
	"agency/internal/contract"
	"agency/internal/file"
)

// fileStamp tells two contents of a file apart without reading them. A file that was exchanged for another has another inode.
type fileStamp struct {
	size, mtime int64
	inode       uint64
}

func stampOf(path string) fileStamp {
	info, err := os.Lstat(path)
	if err != nil {
		return fileStamp{}
	}
	stamp := fileStamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.inode = stat.Ino
	}
	return stamp
}

// rescan finds what no event told of: contracts that changed, folders that were made anew, wrappers that are gone. It also
// refreshes the heartbeat in the views.
func (s *Supervisor) rescan() {
	if err := s.Records.WriteFacts(s.ctx); err != nil && s.ctx.Err() == nil {
		s.Log.Error("write what was kept in memory", "err", err)
	}
	s.mu.Lock()
	runs := make([]liveRun, 0, len(s.live))
	for _, l := range s.live {
		runs = append(runs, *l)
	}
	s.mu.Unlock()
	// One question for all: a thousand questions take a hundred times as long.
	records, err := s.Records.Runs(s.ctx, agency.Filter{Live: true})
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
			r = s.settleAgain(l)
			if r == nil {
				continue
			}
		}
		s.readSnapshot(s.ctx, l.id)
		s.refreshState(l, r)
	}
	s.writeUnwritten()
	if s.sessionLeft.Swap(false) {
		if err := s.endSessions(s.ctx); err != nil {
			s.Log.Warn("end sessions", "err", err)
		}
	}
	s.lookForSessions()
}

// settleAgain settles an attempt without a link, as the record has it now: the rescan before may have taken its time, and somebody
// else may have settled the attempt and begun the next one. It returns the run, or nil when that attempt is not there any more.
func (s *Supervisor) settleAgain(l *liveRun) *agency.Run {
	r, err := s.Records.Run(s.ctx, l.id)
	if err != nil || r.Attempt.Number != l.attempt {
		return nil
	}
	if _, err := s.settle(s.ctx, r); err != nil {
		s.Log.Error("look at run again", "run", l.id, "err", err)
		return nil
	}
	if r, err = s.Records.Run(s.ctx, l.id); err != nil {
		return nil
	}
	return r
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

// lookAgain reads what an agent wrote and no event told of, and the files that its program keeps.
func (s *Supervisor) lookAgain(l *liveRun, r *agency.Run) {
	if r.Attempt.State == agency.Queued {
		return
	}
	s.readWords(l, r)
	s.followFiles(l.id, r.Runner.Kind, l.situation, r.Attempt.RunnerProcess)
	for _, path := range s.Harness.Files(r.Runner.Kind, l.situation, r.Attempt.RunnerProcess) {
		s.follow(s.ctx, l.id, path)
	}
}

// readWords reads what an agent wrote in its status file and reports, and what its hooks did. Before an attempt has begun its worktree
// holds the words of the attempt before.
func (s *Supervisor) readWords(l *liveRun, r *agency.Run) {
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
}

// readWord brings the runner's contract file into the record when it says something new. What cannot be read is itself the
// news. What the record cannot take is read again by the next rescan.
func (s *Supervisor) readWord(ctx context.Context, id agency.RunID) {
	// One at a time: an older reading must not be written over a newer one.
	unlock, err := s.locks.lock(ctx, "word "+string(id))
	if err != nil {
		return
	}
	defer unlock()
	l, ok := s.liveCopy(id)
	if !ok {
		return
	}
	stamp := stampOf(filepath.Join(l.worktree, agency.ContractFile))
	word := s.observeWord(l.worktree)
	// The file is exchanged in this moment, or a writer that does not exchange it is in the middle of it.
	for wait := time.Millisecond; word.Problem != "" && wait < 100*time.Millisecond; wait *= 4 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		word = s.observeWord(l.worktree)
	}
	s.offered(ctx, &l, word, stamp)
	_, err = s.Records.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.News, error) {
		if r.Attempt.Number != l.attempt || r.Attempt.State.Final() {
			return nil, nil
		}
		return takeWord(&l, &r.Attempt, word, stamp), nil
	})
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("record contract", "run", id, "err", err)
		}
		return
	}
	s.remember(&l, func(now *liveRun) { now.stamp = stamp })
}

// remember changes what is known of an attempt, if it is still the one that is watched.
func (s *Supervisor) remember(l *liveRun, change func(now *liveRun)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.live[l.id]; now != nil && now.attempt == l.attempt {
		change(now)
	}
}

// signEvery is how often an agent at work that says the same again and again is written down as heard.
const signEvery = time.Second

// takeWord makes a reading of the contract file the word of an attempt. The same word is news when the agent wrote it again
// after a message, a prompt or a report; of an agent at work it is a sign of life, and otherwise it stands as it did.
func takeWord(l *liveRun, a *agency.Attempt, word agency.Observed, stamp fileStamp) []agency.News {
	before := a.Word
	again := wroteAgain(l, before.At, stamp, word.At)
	var since time.Time
	if before.Contract != nil {
		since = before.At
	}
	// A file that was not there, or that nobody could read, may come back as it was: then it is as old as it is.
	word.At = observedAt(filepath.Join(l.worktree, agency.ContractFile), since, word.At)
	anew := again && outdone(a, l.situation, before.At) && !outdone(a, l.situation, word.At)
	if sameWord(before, word) && !anew {
		works := word.Contract != nil && word.Contract.Status == agency.SaysWorking
		if again && works && word.At.Sub(before.At) >= signEvery {
			a.Word = word
		}
		return nil
	}
	a.Word = word
	data := map[string]any{"problem": word.Problem}
	if word.Contract != nil {
		data["status"], data["summary"] = word.Contract.Status, word.Contract.Summary
	}
	return []agency.News{{Type: agency.ContractChanged, Data: data}}
}

// wroteAgain says that the contract file was written since it was last read. A daemon that has not read it yet goes by when the
// word in the record was said.
func wroteAgain(l *liveRun, said time.Time, stamp fileStamp, now time.Time) bool {
	if l.stamp != (fileStamp{}) {
		return stamp != l.stamp
	}
	at := changeTime(filepath.Join(l.worktree, agency.ContractFile))
	return at.After(said) && !at.After(now)
}

// outdone says that something came after what an agent said at a time: a message, a prompt or a report.
func outdone(a *agency.Attempt, situation *agency.Situation, at time.Time) bool {
	reported := situation.Reported
	return a.InputAt != nil && at.Before(*a.InputAt) || at.Before(situation.PromptAt) || reported != nil && !reported.At.Before(at)
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
		if c, err = contract.Parse(data); err == nil {
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

// sameWord says that two readings say the same, whatever time the agent wrote beside it.
func sameWord(a, b agency.Observed) bool {
	return a.Problem == b.Problem && reflect.DeepEqual(undated(a.Contract), undated(b.Contract))
}

func undated(c *agency.Contract) agency.Contract {
	if c == nil {
		return agency.Contract{}
	}
	said := *c
	said.UpdatedAt = ""
	return said
}
