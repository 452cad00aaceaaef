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

// The window that a repository can have on its runs: a folder with one link per run that is not
// removed, by its handle, and one to the newest.
const (
	windowDir    = "agent_runs"
	windowLatest = "latest"
)

// showRuns brings the window of a run's repository up to date, where it has one. It is a view: what
// fails is only logged, and made good by the next change.
func (v *views) showRuns(ctx context.Context, r *agency.Run) {
	root := r.Repo.Root // a bare repository's holds no such file
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

// windowEntries are the links in a window and what they lead to. Where links are impossible they
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

// ours says that an entry of a window was made for a run of this data root, and not by somebody
// else.
func (v *views) ours(name string, there map[string]string) bool {
	target, ok := there[name]
	if ok && name == windowLatest {
		if target, ok = there[target]; !ok {
			return true // it leads nowhere
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
