package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/sessionfile"
)

// write updates the files of one session, and notes when it has settled. The caller holds the
// session's lock.
func (f *Files) write(ctx context.Context, id agency.SessionID, w *filed) {
	within, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	took, err := f.writeSession(within, id, w)
	switch {
	case agency.IsCode(err, agency.CodeSessionNotFound):
		f.drop(id)
	case ctx.Err() != nil: // Stop interrupted it, and writes the rest itself
	case err != nil:
		w.retry = min(max(2*w.retry, firstRetry), lastRetry)
		if text := err.Error(); text != w.failure {
			f.fail(w, text)
			f.Log.Warn("write status files", "session", id, "err", err)
		}
		w.due = f.Now().Add(w.retry)
	default:
		if w.failure != "" {
			f.Log.Info("the status files can be written again", "session", id)
		}
		f.fail(w, "")
		w.retry = 0
		w.due = f.Now().Add(pause(took))
	}
}

func (f *Files) fail(w *filed, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.failure = text
}

// Failures returns why the status files of sessions are behind, by session.
func (f *Files) Failures() map[agency.SessionID]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	failures := map[agency.SessionID]string{}
	for id, w := range f.sessions {
		if w.failure != "" {
			failures[id] = w.failure
		}
	}
	return failures
}

// pause returns how long to wait between writes of a session, from the duration of the last one.
func pause(took time.Duration) time.Duration {
	return min(max(writeEvery, rewriteShare*took), longestPause)
}

func (f *Files) writeSession(ctx context.Context, id agency.SessionID, w *filed) (took time.Duration, err error) {
	begin, since := f.Now(), w.updated
	if w.failure != "" {
		since = time.Time{} // the content of the files is unknown now
	}
	s, changed, err := f.Store.SessionSince(ctx, id, since)
	if err != nil {
		return 0, err
	}
	w.take(changed)
	root, rel, err := place(s)
	if err != nil {
		return 0, err
	}
	took = f.Now().Sub(begin)
	f.exclude(ctx, s, root, w) // it may wait for a lock of the repository
	begin = f.Now()
	path := filepath.Join(rel, "status.json")
	if _, err := file.StatBeneath(root, path); errors.Is(err, fs.ErrNotExist) {
		f.unlink(s.StatusDir) // the folder may have been removed
		w.unlinked = w.unlinked[:0]
		for i := range w.agents {
			if w.agents[i].Run != "" {
				w.unlinked = append(w.unlinked, i)
			}
		}
	}
	data := sessionfile.Encode(sessionfile.Head(s, sessionfile.Waves(w.agents)), w.blocks)
	if err := file.WriteBeneath(root, path, data, 0o644); err != nil {
		return 0, err
	}
	f.mu.Lock()
	w.shown = s
	f.mu.Unlock()
	if err := f.linkLogs(root, rel, w); err != nil {
		return 0, err
	}
	if s.Status.Final() {
		if err := f.Store.MarkFilesWritten(ctx, id); err != nil {
			return 0, err
		}
	}
	w.updated = s.UpdatedAt
	return took + f.Now().Sub(begin), nil
}

// exclude makes git ignore the status folder, once. The files are useful even if that fails.
func (f *Files) exclude(ctx context.Context, s *agency.Session, root string, w *filed) {
	if w.excluded || root != s.Repo.Root || f.ahead(w.excludeAt) {
		return
	}
	folder, err := filepath.Rel(s.Repo.Root, s.StatusDir)
	if err == nil {
		err = f.Exclude(ctx, s.Repo, filepath.ToSlash(folder))
	}
	if w.excluded = err == nil; w.excluded {
		return
	}
	w.excludeAt = f.Now().Add(lastRetry)
	if ctx.Err() == nil {
		f.Log.Warn("keep the status files out of git", "session", s.ID, "err", err)
	}
}

// take applies changes of the agents.
func (w *filed) take(changed []agency.SessionAgent) {
	for i := range changed {
		a := &changed[i]
		for a.Position >= len(w.agents) {
			w.agents, w.blocks = append(w.agents, agency.SessionAgent{}), append(w.blocks, nil)
		}
		if a.Run != w.agents[a.Position].Run {
			w.unlinked = append(w.unlinked, a.Position)
		}
		w.agents[a.Position], w.blocks[a.Position] = *a, sessionfile.EncodeAgent(sessionfile.AgentObject(a))
	}
}

// linkLogs links the logs of agents that have runs. The logs of external agents are files of their
// executor.
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
