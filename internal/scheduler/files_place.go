package scheduler

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// activate points the link of each status folder to the newest running session. When none runs, it
// stays at the one that began last. A session gets a link once it has a file.
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

// newest returns the sessions to which the links of the status folders should point.
func (f *Files) newest() map[string]*agency.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := map[string]*agency.Session{}
	for _, w := range f.sessions {
		if w.shown == nil {
			continue
		}
		if last := newest[w.shown.StatusDir]; last == nil || moreActive(w.shown, last) {
			newest[w.shown.StatusDir] = w.shown
		}
	}
	return newest
}

// moreActive reports whether the link to the active session should point to a rather than to b.
func moreActive(a, b *agency.Session) bool {
	if a.Status.Final() != b.Status.Final() {
		return b.Status.Final()
	}
	return a.Seq > b.Seq
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

// unlink makes the next activate check the link of a status folder.
func (f *Files) unlink(dir string) {
	f.linking.Lock()
	defer f.linking.Unlock()
	delete(f.active, dir)
}

// activeLink returns the path of the link to the active session, beside the folder of a session.
func activeLink(rel string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(rel)), ActiveSession)
}

// Remove deletes a settled session from the record, with its status files and the link to them.
// Files that cannot be removed cause a warning and are tried again at the next Start, which also
// finishes a removal that a crash interrupted.
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

// clear removes the files of a session that is no longer in the record.
func (f *Files) clear(ctx context.Context, s *agency.Session) error {
	w := f.of(s.ID)
	w.mu.Lock()  // a write in progress is the last one
	f.drop(s.ID) // before the link to it is removed: nothing links to it again
	unlinked, err := f.removeFiles(s)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if unlinked {
		if err := f.relink(ctx, s); err != nil {
			return err
		}
	}
	killpoint.At("session.remove.cleared")
	return f.Store.ForgetSession(ctx, s.ID)
}

// removeFiles removes the files of a session, and the link to it. It reports whether there is no
// link to an active session now.
func (f *Files) removeFiles(s *agency.Session) (unlinked bool, err error) {
	f.linking.Lock()
	defer f.linking.Unlock()
	root, rel, err := place(s)
	if err != nil {
		return false, err
	}
	target, err := file.ReadLinkBeneath(root, activeLink(rel))
	if unlinked = err != nil || target == filepath.Join("sessions", string(s.ID)); unlinked {
		delete(f.active, s.StatusDir)
		if err := file.RemoveBeneath(root, activeLink(rel)); err != nil {
			return false, err
		}
	}
	return unlinked, file.RemoveBeneath(root, rel)
}

// relink points the link of a removed session's status folder to the newest session that is left.
func (f *Files) relink(ctx context.Context, removed *agency.Session) error {
	sessions, err := f.Store.Sessions(ctx, agency.SessionFilter{Repo: removed.Repo.Fingerprint})
	if err != nil {
		return err
	}
	var left *agency.Session
	for i := range sessions {
		if s := &sessions[i]; s.StatusDir == removed.StatusDir && (left == nil || moreActive(s, left)) {
			left = s
		}
	}
	if left == nil {
		return nil
	}
	root, rel, err := place(left)
	if err != nil {
		return err
	}
	if _, err := file.StatBeneath(root, rel); errors.Is(err, fs.ErrNotExist) {
		return nil // its first write links it
	}
	f.linking.Lock()
	defer f.linking.Unlock()
	return f.link(left.StatusDir, left)
}

// finishRemovals removes what is left of removed sessions.
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

// place returns a trusted folder and the path of the session's own folder below it, which is
// reached without following links. The trusted folder is the repository, or a status folder
// elsewhere, which is created if necessary.
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
