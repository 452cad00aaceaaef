package observe

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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

// LookAgain reads what an agent wrote and no event told of, and the files that its program keeps.
func (ob *Observer) LookAgain(r *agency.Run) {
	l, ok := ob.copyOf(r.ID)
	if !ok || l.attempt != r.Attempt.Number {
		return
	}
	ob.watchAgain(l.id, filepath.Join(l.worktree, agency.StateDir))
	if r.Attempt.State == agency.Queued {
		return
	}
	ob.ReadWords(r)
	ob.followFiles(l.id, r.Runner.Kind, l.agentState, r.Attempt.RunnerProcess)
	for _, path := range ob.Harness.Files(r.Runner.Kind, l.agentState, r.Attempt.RunnerProcess) {
		ob.follow(ob.ctx, l.id, path)
	}
}

// ReadWords reads what an agent wrote in its status file and reports, and what its hooks did. Before an attempt has begun its worktree
// holds the words of the attempt before.
func (ob *Observer) ReadWords(r *agency.Run) {
	l, ok := ob.copyOf(r.ID)
	if !ok || r.Attempt.State == agency.Queued {
		return
	}
	if stampOf(filepath.Join(l.worktree, agency.ContractFile)) != l.stamp {
		ob.readContract(ob.ctx, l.id)
	}
	ob.readReports(ob.ctx, l.id)
	if evidenceWaits(&l) {
		ob.ReadEvidence(ob.ctx, l.id)
	}
}

// readContract brings the runner's contract file into the record when it says something new. What cannot be read is itself the
// news. What the record cannot take is read again by the next rescan.
func (ob *Observer) readContract(ctx context.Context, id agency.RunID) {
	// One at a time: an older reading must not be written over a newer one.
	unlock, err := ob.locks.Lock(ctx, "word "+string(id))
	if err != nil {
		return
	}
	defer unlock()
	l, ok := ob.copyOf(id)
	if !ok {
		return
	}
	stamp := stampOf(filepath.Join(l.worktree, agency.ContractFile))
	word := readWord(l.worktree, ob.Now())
	// The file is exchanged in this moment, or a writer that does not exchange it is in the middle of it.
	for wait := time.Millisecond; word.Problem != "" && wait < 100*time.Millisecond; wait *= 4 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		word = readWord(l.worktree, ob.Now())
	}
	ob.outputs.offered(ctx, &l, word, stamp)
	_, err = ob.Store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Attempt.Number != l.attempt || r.Attempt.State.Final() {
			return nil, nil
		}
		return takeWord(&l, &r.Attempt, word, stamp), nil
	})
	if err != nil {
		if ctx.Err() == nil {
			ob.Log.Error("record contract", "run", id, "err", err)
		}
		return
	}
	ob.change(&l, func(now *liveRun) { now.stamp = stamp })
}

// heardEvery is how often an agent at work that says the same again and again is written down as heard.
const heardEvery = time.Second

// takeWord makes a reading of the contract file the word of an attempt. The same word is news when the agent wrote it again
// after a message, a prompt or a report; of an agent at work it is a sign of life, and otherwise it stands as it did.
func takeWord(l *liveRun, a *agency.Attempt, word agency.Observed, stamp fileStamp) []agency.EventDraft {
	before := a.Word
	again := wroteAgain(l, before.At, stamp, word.At)
	var since time.Time
	if before.Contract != nil {
		since = before.At
	}
	// A file that was not there, or that nobody could read, may come back as it was: then it is as old as it is.
	word.At = observedAt(filepath.Join(l.worktree, agency.ContractFile), since, word.At)
	anew := again && superseded(a, l.agentState, before.At) && !superseded(a, l.agentState, word.At)
	if sameWord(before, word) && !anew {
		works := word.Contract != nil && word.Contract.Status == agency.ReportedWorking
		if again && works && word.At.Sub(before.At) >= heardEvery {
			a.Word = word
		}
		return nil
	}
	a.Word = word
	data := map[string]any{"problem": word.Problem}
	if word.Contract != nil {
		data["status"], data["summary"] = word.Contract.Status, word.Contract.Summary
	}
	return []agency.EventDraft{{Type: agency.ContractChanged, Data: data}}
}

// wroteAgain says that the contract file was written since it was last read. A daemon that has not read it yet goes by when the
// word in the record was said.
func wroteAgain(l *liveRun, said time.Time, stamp fileStamp, now time.Time) bool {
	if l.stamp != (fileStamp{}) {
		return stamp != l.stamp
	}
	at := ChangeTime(filepath.Join(l.worktree, agency.ContractFile))
	return at.After(said) && !at.After(now)
}

// superseded says that something came after what an agent said at a time: a message, a prompt or a report.
func superseded(a *agency.Attempt, agentState *agency.AgentState, at time.Time) bool {
	reported := agentState.Reported
	return a.InputAt != nil && at.Before(*a.InputAt) || at.Before(agentState.PromptAt) || reported != nil && !reported.At.Before(at)
}

// ChangeTime is when a file's content or name last changed, by the kernel's clock; zero when there is no such file.
func ChangeTime(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return ctime(stat)
	}
	return time.Time{}
}

// readWord reads the contract file of a worktree.
func readWord(worktree string, now time.Time) agency.Observed {
	word := agency.Observed{At: now}
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
