package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
)

// A repository can have a window on its runs: a folder with a link for each run that is not
// removed, named by its handle, and a link to the newest run.
const (
	windowDir    = "agent_runs"
	windowLatest = "latest"
)

// showRuns updates the window of a run's repository, if it has one. A failure is only logged; the
// next change repairs it.
func (v *views) showRuns(ctx context.Context, r *agency.Run) {
	root := r.Repo.Root // the root of a bare repository has no such file
	project, err := v.projects.read(ctx, agency.Repo{Root: root, Toplevel: root}, "")
	if err != nil || !project.Window {
		return
	}
	unlock, err := v.locks.Lock(ctx, "window "+r.Repo.Fingerprint)
	if err != nil {
		return
	}
	defer unlock()
	if err := v.refreshWindow(ctx, root, r.Repo.Fingerprint); err != nil {
		v.log.Warn("refresh "+windowDir, "repo", root, "err", err)
	}
}

func (v *views) refreshWindow(ctx context.Context, root, fingerprint string) error {
	runs, err := v.store.Runs(ctx, agency.Filter{Repo: fingerprint})
	if err != nil {
		return err
	}
	want := map[string]string{}
	for i := range runs {
		want[runs[i].Handle] = runs[i].Dir
		want[windowLatest] = runs[i].Handle // the newest is the last
	}
	there, err := windowEntries(root)
	if err != nil {
		return err
	}
	for name := range there {
		if want[name] == "" && v.ours(name, there) {
			if err := removeBeneath(root, filepath.Join(windowDir, name)); err != nil {
				return err
			}
		}
	}
	for name, target := range want {
		if there[name] == target {
			continue
		}
		rel := filepath.Join(windowDir, name)
		err := file.ReplaceLinkBeneath(root, rel, target)
		if linkImpossible(err) {
			err = file.WriteBeneath(root, rel, []byte(target+"\n"), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// windowEntries returns the links in a window and their targets. Where links are impossible, they
// are files with a path.
func windowEntries(root string) (map[string]string, error) {
	found := map[string]string{}
	info, err := file.StatBeneath(root, windowDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(root, windowDir), Err: file.ErrNotRegular}
	}
	entries, err := os.ReadDir(filepath.Join(root, windowDir))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		rel := filepath.Join(windowDir, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			if target, err := os.Readlink(filepath.Join(root, rel)); err == nil {
				found[entry.Name()] = target
			}
		case entry.Type().IsRegular():
			if data, err := file.ReadBeneath(root, rel, 4096); err == nil {
				found[entry.Name()] = strings.TrimSuffix(string(data), "\n")
			}
		}
	}
	return found, nil
}

// ours reports whether an entry of a window was made for a run of this data root.
func (v *views) ours(name string, there map[string]string) bool {
	target, ok := there[name]
	if ok && name == windowLatest {
		if target, ok = there[target]; !ok {
			return true // its target does not exist
		}
	}
	return strings.HasPrefix(target, filepath.Join(v.home, "runs")+"/")
}

func removeBeneath(root, rel string) error {
	dir, err := os.OpenRoot(filepath.Join(root, filepath.Dir(rel)))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Remove(filepath.Base(rel))
}
