package scheduler

import (
	"context"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// activate has the link of each status folder lead to the newest session that runs. When none does, it stays at the one that began
// last. A session has a link from when it has a file.
func (f *Files) activate() {
	f.linking.Lock()
	defer f.linking.Unlock()
	for dir, s := range f.newest() {
		if err := f.link(dir, s); err != nil {
			if text := err.Error(); f.unlinked[dir] != text {
				f.unlinked[dir] = text
				f.Log.Warn("link the active session", "session", s.ID, "err", err) // the next change tries again
			}
			continue
		}
		delete(f.unlinked, dir)
	}
}

// newest are the sessions that the links of the status folders should lead to.
func (f *Files) newest() map[string]*agency.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := map[string]*agency.Session{}
	for _, w := range f.sessions {
		if w.shown == nil {
			continue
		}
		last := newest[w.shown.StatusDir]
		if last == nil || last.Status.Final() && !w.shown.Status.Final() ||
			last.Status.Final() == w.shown.Status.Final() && last.Seq < w.shown.Seq {
			newest[w.shown.StatusDir] = w.shown
		}
	}
	return newest
}

func (f *Files) link(dir string, s *agency.Session) error {
	target := filepath.Join("sessions", string(s.ID))
	if f.active[dir] == target {
		return nil
	}
	root, rel, err := place(s)
	if err != nil {
		return err
	}
	link := activeLink(rel)
	now, err := file.ReadLinkBeneath(root, link)
	if err != nil || now != target && (!s.Status.Final() || now < target) { // ids begin with the time
		if err := file.ReplaceLinkBeneath(root, link, target); err != nil {
			return err
		}
	}
	f.active[dir] = target
	return nil
}

// unlink has the next activate look at the link of a status folder.
func (f *Files) unlink(dir string) {
	f.linking.Lock()
	defer f.linking.Unlock()
	delete(f.active, dir)
}

// activeLink is the link to the active session beside the folder of a session.
func activeLink(rel string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(rel)), ActiveSession)
}

// Remove takes a settled session out of the record, with its status files and the link that leads to them. Files that cannot be
// removed are warned of, and tried again at the next Start, which also finishes what a crash left half done.
func (f *Files) Remove(ctx context.Context, s *agency.Session) (warning string, err error) {
	if err := f.Store.RemoveSession(ctx, s.ID); err != nil {
		return "", err
	}
	killpoint.At("session.remove.recorded")
	if err := f.clear(context.WithoutCancel(ctx), s); err != nil {
		return "the files in " + s.Dir + " are still there, and the next start of the daemon tries again: " + agency.AsError(err).Message, nil
	}
	return "", nil
}

// clear removes the files of a session that is not in the record any more.
func (f *Files) clear(ctx context.Context, s *agency.Session) error {
	w := f.of(s.ID)
	w.mu.Lock() // whoever writes now is the last
	err := f.removeFiles(s)
	w.mu.Unlock()
	f.drop(s.ID)
	if err != nil {
		return err
	}
	killpoint.At("session.remove.cleared")
	return f.Store.ForgetSession(ctx, s.ID)
}

func (f *Files) removeFiles(s *agency.Session) error {
	f.linking.Lock()
	defer f.linking.Unlock()
	root, rel, err := place(s)
	if err != nil {
		return err
	}
	if target, err := file.ReadLinkBeneath(root, activeLink(rel)); err == nil && target == filepath.Join("sessions", string(s.ID)) {
		delete(f.active, s.StatusDir)
		if err := file.RemoveBeneath(root, activeLink(rel)); err != nil {
			return err
		}
	}
	return file.RemoveBeneath(root, rel)
}

// finishRemovals removes what is left of sessions that were removed.
func (f *Files) finishRemovals(ctx context.Context) {
	sessions, err := f.Store.RemovedSessions(ctx)
	if err != nil && ctx.Err() == nil {
		f.Log.Error("read removed sessions", "err", err)
	}
	for i := range sessions {
		if err := f.clear(ctx, &sessions[i]); err != nil && ctx.Err() == nil {
			f.Log.Warn("remove the status files of a removed session", "session", sessions[i].ID, "dir", sessions[i].Dir, "err", err)
		}
	}
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
