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

// fileStamp distinguishes two contents of a file without reading them. A replaced file has another
// inode.
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

// LookAgain reads what an agent wrote without a file event, and the files that its program keeps.
func (ob *Observer) LookAgain(r *agency.Run) {
	l, ok := ob.copyOf(r.ID)
	if !ok || l.attempt != r.Attempt.Number {
		return
	}
	ob.watchAgain(l.id, filepath.Join(l.worktree, agency.StateDir))
	if r.Attempt.State == agency.Queued {
		return
	}
	ob.ReadStatusFiles(r)
	ob.followFiles(l.id, r.Runner.Kind, l.agentState, r.Attempt.RunnerProcess)
	for _, path := range ob.Harness.Files(r.Runner.Kind, l.agentState, r.Attempt.RunnerProcess) {
		ob.follow(ob.ctx, l.id, path)
	}
}

// ReadStatusFiles reads an agent's status file and reports, and the evidence of its hooks. Before
// an attempt has begun, its worktree holds the files of the previous attempt.
func (ob *Observer) ReadStatusFiles(r *agency.Run) {
	l, ok := ob.copyOf(r.ID)
	if !ok || r.Attempt.State == agency.Queued {
		return
	}
	var unread error
	if stampOf(filepath.Join(l.worktree, agency.ContractFile)) != l.stamp {
		unread = ob.readContract(ob.ctx, l.id)
	}
	ob.logUnread(l.id, errors.Join(unread, ob.readReports(ob.ctx, l.id)))
	if evidenceWaits(&l) {
		ob.ReadEvidence(ob.ctx, l.id)
	}
}

// logUnread logs why files that an agent wrote could not be read, if err is not nil.
func (ob *Observer) logUnread(id agency.RunID, err error) {
	if err != nil {
		ob.Log.Warn("read what an agent wrote", "run", id, "err", err)
	}
}

// readContract records the agent's status file when its content is new. An unreadable file counts
// as new content. What cannot be recorded is read again by the next rescan. So is a file that the
// system fails to read: then readContract records nothing, and returns the error.
func (ob *Observer) readContract(ctx context.Context, id agency.RunID) error {
	// One at a time: an older reading must not overwrite a newer one.
	unlock, err := ob.locks.Lock(ctx, "state "+string(id))
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	defer unlock()
	l, ok := ob.copyOf(id)
	if !ok {
		return nil
	}
	stamp := stampOf(filepath.Join(l.worktree, agency.ContractFile))
	reading, err := readStatusFile(l.worktree, ob.Now())
	// The file is being replaced, or a writer that writes in place is in the middle of it.
	for wait := time.Millisecond; (err != nil || reading.Problem != "") && wait < 100*time.Millisecond; wait *= 4 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		reading, err = readStatusFile(l.worktree, ob.Now())
	}
	if err != nil {
		return err
	}
	ob.offered(ctx, &l, reading, stamp)
	_, err = ob.Store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Attempt.Number != l.attempt || r.Attempt.State.Final() {
			return nil, nil
		}
		return ob.takeReported(&l, &r.Attempt, reading, stamp), nil
	})
	if err != nil {
		if ctx.Err() == nil {
			ob.Log.Error("record contract", "run", id, "err", err)
		}
		return nil
	}
	ob.change(&l, func(now *liveRun) { now.stamp = stamp })
	return nil
}

// heardEvery is how often the repeated same status of a working agent is recorded as a sign of
// life.
const heardEvery = time.Second

// takeReported makes a reading of the status file the status of an attempt. The same status counts
// as new when the agent wrote it again after a message, a prompt or a report; from a working agent
// it is a sign of life, and otherwise it changes nothing.
func (ob *Observer) takeReported(l *liveRun, a *agency.Attempt, reading agency.Observed, stamp fileStamp) []agency.EventDraft {
	before := a.Reported
	again := ob.wroteAgain(l, before.At, stamp, reading.At)
	var since time.Time
	if before.Contract != nil {
		since = before.At
	}
	// A file that was missing or unreadable may come back unchanged: then its age counts from its
	// last change.
	if at := ob.changeTime(filepath.Join(l.worktree, agency.ContractFile)); !at.IsZero() && !at.Before(since) && !at.After(reading.At) {
		reading.At = at
	}
	anew := again && superseded(a, l.agentState, before.At) && !superseded(a, l.agentState, reading.At)
	if sameReported(before, reading) && !anew {
		works := reading.Contract != nil && reading.Contract.Status == agency.ReportedWorking
		if again && works && reading.At.Sub(before.At) >= heardEvery {
			a.Reported = reading
		}
		return nil
	}
	a.Reported = reading
	data := map[string]any{"problem": reading.Problem}
	if reading.Contract != nil {
		data["status"], data["summary"] = reading.Contract.Status, reading.Contract.Summary
	}
	return []agency.EventDraft{{Type: agency.ContractChanged, Data: data}}
}

// wroteAgain reports whether the status file was written since it was last read. A daemon that has
// not read it yet compares with the time of the recorded status.
func (ob *Observer) wroteAgain(l *liveRun, said time.Time, stamp fileStamp, now time.Time) bool {
	if l.stamp != (fileStamp{}) {
		return stamp != l.stamp
	}
	at := ob.changeTime(filepath.Join(l.worktree, agency.ContractFile))
	return at.After(said) && !at.After(now)
}

// changeTime returns when a file's content or name last changed, by the daemon's clock. It is zero when
// the file does not exist, and when the time is yet to come: then the clock was changed since.
func (ob *Observer) changeTime(path string) time.Time {
	at := ChangeTime(path)
	if at.IsZero() || ob.Convert(at).Before(at) {
		return time.Time{}
	}
	return ob.Convert(at)
}

// superseded reports whether a message, a prompt or a report came after the given time.
func superseded(a *agency.Attempt, agentState *agency.AgentState, at time.Time) bool {
	reported := agentState.Reported
	return a.InputAt != nil && at.Before(*a.InputAt) || at.Before(agentState.PromptAt) || reported != nil && !reported.At.Before(at)
}

// ChangeTime returns when a file's content or name last changed, by the kernel's clock; zero when
// the file does not exist.
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

// readStatusFile reads the status file of a worktree. The error is that of a system that fails to
// read the file; whatever the agent made of the file is a problem in the reading instead.
func readStatusFile(worktree string, now time.Time) (agency.Observed, error) {
	reading := agency.Observed{At: now}
	data, err := file.ReadBeneath(worktree, agency.ContractFile, agency.ContractLimit)
	if agency.Unproven(err) {
		return reading, err
	}
	if err == nil {
		var c agency.Contract
		if c, err = contract.Parse(data); err == nil {
			reading.Contract = &c
			return reading, nil
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		reading.Problem = whyUnreadable(err)
	}
	return reading, nil
}

// whyUnreadable returns in a few words why a file in a worktree cannot be read, without its long
// path.
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

// sameReported reports whether two readings are the same, apart from the time that the agent wrote.
func sameReported(a, b agency.Observed) bool {
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
