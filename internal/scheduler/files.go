package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agency"
	"agency/internal/file"
)

const (
	// What changes is written after at most writeEvery, or rewriteShare times as long as a file takes to write: both leave room to
	// the lag that is promised, 50 ms or ten times the writing.
	writeEvery   = 25 * time.Millisecond
	rewriteShare = 7
	passEvery    = 10 * time.Millisecond // between two looks at what changed
	// A file that cannot be written is tried again, ever more rarely.
	firstRetry, lastRetry = time.Second, time.Minute
	lastPass              = 2 * time.Second // for what Stop still has to write
)

// ActiveSession is the name of the link to the newest session that runs.
const ActiveSession = "active-session"

// FilesDeps are the parts that the writer of status files works with.
type FilesDeps struct {
	Store Store
	Log   *slog.Logger
	Now   func() time.Time // never runs backwards
	Home  string           // data root, for the logs of runs
	// Exclude keeps a folder of a repository, relative to its root, out of git.
	Exclude func(ctx context.Context, repo agency.Repo, folder string) error
}

// Files keeps the status files of sessions: status.json, a link to each log, and the link to the active session. They are a
// view: nothing reads them back, Start writes anew what may be stale, and one that cannot be written is logged and tried again.
type Files struct {
	FilesDeps

	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex // one writes at a time
	sessions map[agency.SessionID]*filed
	active   map[string]string // by status folder: where its link leads to
	unlinked map[string]string // why it does not
}

// filed is what was written of one session.
type filed struct {
	updated  time.Time // of the record that was read
	agents   []agency.SessionAgent
	blocks   [][]byte // the agents as they stand in the file
	unlinked []int    // agents whose logs have no link yet
	excluded bool
	due      time.Time // not before
	retry    time.Duration
	failure  string
}

// NewFiles makes a writer of status files. It does nothing until Start.
func NewFiles(deps FilesDeps) *Files {
	return &Files{FilesDeps: deps, sessions: map[agency.SessionID]*filed{}, active: map[string]string{}, unlinked: map[string]string{}}
}

// Start writes the files of all sessions that may need it, and follows the record until Stop.
func (f *Files) Start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.run(ctx)
	}()
}

// Stop writes what is left to write, and ends. It is idempotent and waits.
func (f *Files) Stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
	}
}

func (f *Files) run(ctx context.Context) {
	for {
		changed := f.Store.Changed()
		next := f.pass(ctx, false)
		timer := time.NewTimer(time.Hour)
		if !next.IsZero() {
			timer.Reset(max(next.Sub(f.Now()), time.Millisecond))
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		select {
		case <-time.After(passEvery):
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPass)
			defer cancel()
			f.pass(last, true)
			return
		}
	}
}

// pass writes what changed and is due, or all that changed, and says when to come again; zero is at the next change.
func (f *Files) pass(ctx context.Context, all bool) (next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sessions, err := f.Store.UnfiledSessions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.Log.Error("read sessions for their status files", "err", err)
		}
		return f.Now().Add(firstRetry)
	}
	known := make(map[agency.SessionID]bool, len(sessions))
	newest := map[string]*agency.Session{}
	for i := range sessions {
		s := &sessions[i]
		known[s.ID] = true
		if last := newest[s.StatusDir]; last == nil || !s.Status.Final() || last.Status.Final() {
			newest[s.StatusDir] = s
		}
		w := f.sessions[s.ID]
		if w == nil {
			w = &filed{}
			f.sessions[s.ID] = w
		}
		if w.updated.Equal(s.UpdatedAt) && w.failure == "" && !s.Status.Final() {
			continue
		}
		if now := f.Now(); all || !now.Before(w.due) {
			f.write(ctx, s, w)
			w.due = f.Now().Add(f.pause(w, f.Now().Sub(now)))
		}
		if f.sessions[s.ID] != nil && (w.failure != "" || !w.updated.Equal(s.UpdatedAt)) && (next.IsZero() || w.due.Before(next)) {
			next = w.due
		}
	}
	for dir, s := range newest {
		f.activate(dir, s)
	}
	maps.DeleteFunc(f.sessions, func(id agency.SessionID, _ *filed) bool { return !known[id] })
	return next
}

// pause is how long to leave a session alone after it was written.
func (f *Files) pause(w *filed, took time.Duration) time.Duration {
	if w.failure != "" {
		return w.retry
	}
	return max(writeEvery, rewriteShare*took)
}

// write brings the files of one session up to date, and takes note when it has settled.
func (f *Files) write(ctx context.Context, s *agency.Session, w *filed) {
	err := f.writeSession(ctx, s.ID, w)
	switch {
	case ctx.Err() != nil:
	case agency.IsCode(err, agency.CodeSessionNotFound):
		delete(f.sessions, s.ID)
	case err != nil:
		w.retry = min(max(2*w.retry, firstRetry), lastRetry)
		if text := err.Error(); text != w.failure {
			w.failure = text
			f.Log.Warn("write status files", "session", s.ID, "err", err)
		}
	default:
		if w.failure != "" {
			f.Log.Info("the status files can be written again", "session", s.ID)
		}
		w.failure, w.retry = "", 0
	}
}

func (f *Files) writeSession(ctx context.Context, id agency.SessionID, w *filed) error {
	since := w.updated
	if w.failure != "" {
		since = time.Time{} // whatever is there is not known any more
	}
	s, changed, err := f.Store.SessionSince(ctx, id, since)
	if err != nil {
		return err
	}
	w.take(changed)
	w.updated = s.UpdatedAt
	root, rel, err := place(s)
	if err != nil {
		return err
	}
	if !w.excluded && root == s.Repo.Root {
		folder, err := filepath.Rel(s.Repo.Root, s.StatusDir)
		if err == nil {
			err = f.Exclude(ctx, s.Repo, filepath.ToSlash(folder))
		}
		if err != nil {
			f.Log.Warn("keep the status files out of git", "session", id, "err", err) // they are of use all the same
		}
		w.excluded = true
	}
	data := agency.EncodeSessionFile(s.FileHead(agency.Waves(w.agents)), w.blocks)
	if err := file.WriteBeneath(root, filepath.Join(rel, "status.json"), data, 0o644); err != nil {
		return err
	}
	if err := f.linkLogs(root, rel, w); err != nil {
		return err
	}
	if s.Status.Final() {
		return f.Store.FileSession(ctx, id)
	}
	return nil
}

// take notes what changed of the agents.
func (w *filed) take(changed []agency.SessionAgent) {
	for i := range changed {
		a := &changed[i]
		for a.Position >= len(w.agents) {
			w.agents, w.blocks = append(w.agents, agency.SessionAgent{}), append(w.blocks, nil)
		}
		if a.Run != w.agents[a.Position].Run {
			w.unlinked = append(w.unlinked, a.Position)
		}
		w.agents[a.Position], w.blocks[a.Position] = *a, agency.EncodeFileAgent(a.File())
	}
}

// linkLogs links the logs of agents that have runs. Those of outside agents are their executor's own files.
func (f *Files) linkLogs(root, rel string, w *filed) error {
	for len(w.unlinked) > 0 {
		a := &w.agents[w.unlinked[0]]
		log := filepath.Join(f.Home, "runs", string(a.Run), "logs", "runner.log")
		if err := file.ReplaceLinkBeneath(root, filepath.Join(rel, a.ID+".log"), log); err != nil {
			return fmt.Errorf("link the log of agent %s: %w", a.ID, err)
		}
		w.unlinked = w.unlinked[1:]
	}
	return nil
}

// activate has the link of a status folder lead to the newest session that runs. When none does, it stays at the one that began
// last.
func (f *Files) activate(dir string, s *agency.Session) {
	target := filepath.Join("sessions", string(s.ID))
	if f.active[dir] == target {
		return
	}
	root, rel, err := place(s)
	if err == nil {
		link := filepath.Join(filepath.Dir(filepath.Dir(rel)), ActiveSession)
		now, readErr := file.ReadLinkBeneath(root, link)
		if readErr != nil || now != target && (!s.Status.Final() || now < target) { // ids begin with the time
			err = file.ReplaceLinkBeneath(root, link, target)
		}
	}
	if err != nil {
		if text := err.Error(); f.unlinked[dir] != text {
			f.unlinked[dir] = text
			f.Log.Warn("link the active session", "session", s.ID, "err", err) // the next change tries again
		}
		return
	}
	f.active[dir] = target
	delete(f.unlinked, dir)
}

// Write writes at once what changed.
func (f *Files) Write(ctx context.Context) { f.pass(ctx, true) }

// Remove takes the status files of a session away that is not in the record any more, and the link that leads to them.
func (f *Files) Remove(s *agency.Session) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, s.ID)
	root, rel, err := place(s)
	if err != nil {
		return err
	}
	link := filepath.Join(filepath.Dir(filepath.Dir(rel)), ActiveSession)
	if target, err := file.ReadLinkBeneath(root, link); err == nil && target == filepath.Join("sessions", string(s.ID)) {
		delete(f.active, s.StatusDir)
		if err := file.RemoveBeneath(root, link); err != nil {
			return err
		}
	}
	return file.RemoveBeneath(root, rel)
}

// place is a folder that is trusted and the session's own folder beneath it, on the way to which no link is followed: the
// repository, or a status folder elsewhere, which is then made.
func place(s *agency.Session) (root, rel string, err error) {
	if rel, err := filepath.Rel(s.Repo.Root, s.Dir); err == nil && filepath.IsLocal(rel) {
		return s.Repo.Root, rel, nil
	}
	if err := os.MkdirAll(s.StatusDir, 0o755); err != nil { //nolint:gosec // others read the files
		return "", "", err
	}
	rel, err = filepath.Rel(s.StatusDir, s.Dir)
	return s.StatusDir, rel, err
}
