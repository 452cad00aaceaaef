package limit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
)

const id = agency.RunID("r_01ARZ3NDEKTSV4RRFFQ69G5FAV")

// tree makes files below a folder, each with a content.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Below the service manager of a user, the group of a run is beside that of agency, since a group
// that has groups cannot have processes.
func TestGroupOfVersion2(t *testing.T) {
	const slice = "user/app.slice"
	top := tree(t, map[string]string{
		slice + "/cgroup.procs": "", slice + "/cgroup.controllers": "cpu memory pids\n", slice + "/cgroup.subtree_control": "memory pids\n",
		slice + "/tmux.scope/cgroup.procs": "7\n", slice + "/tmux.scope/cgroup.controllers": "", slice + "/tmux.scope/cgroup.subtree_control": "",
	})
	h := parse("30 23 0:26 / "+top+" rw,nosuid - cgroup2 cgroup2 rw\n", "0::/"+slice+"/tmux.scope\n")
	for _, name := range []agency.LimitName{agency.LimitMemory, agency.LimitPids, agency.LimitCPUs} {
		parent, by, err := h.parent(controllers(name))
		if err != nil || by != ByGroup2 || parent != filepath.Join(top, slice) {
			t.Errorf("%s is limited in %s by %s, %v", name, parent, by, err)
		}
	}
}

// A machine without control groups limits what the kernel can limit for a process, and refuses the
// rest.
func TestNoGroups(t *testing.T) {
	h := parse("", "")
	if by, err := h.by(agency.LimitCPUs); err == nil || !strings.Contains(err.Error(), "no control groups") {
		t.Errorf("the processors are limited by %q, %v", by, err)
	}
	if _, err := How(agency.SandboxWorktree, agency.Resources{Tmp: 1 << 20}); !agency.IsCode(err, agency.CodeSandboxUnavailable) {
		t.Errorf("/tmp at worktree: %v", err)
	}
}

// A wrapper that takes the place of another one finds the groups that it made, and no others.
func TestResumeGroup(t *testing.T) {
	top, attempt := t.TempDir(), t.TempDir()
	own := filepath.Join(top, "user", nameOf(id, 2))
	if err := os.WriteFile(filepath.Join(attempt, foldersFile), []byte(own+"\n"+filepath.Join(top, "other")+"\n/elsewhere/"+nameOf(id, 2)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := parse("30 23 0:26 / "+top+" rw,nosuid - cgroup2 cgroup2 rw\n", "0::/user/tmux.scope\n")
	enforced := []agency.EnforcedLimit{{Limit: agency.LimitMemory, By: ByGroup2}, {Limit: agency.LimitOpenFiles, By: ByRlimit}}
	g, err := openGroup(h, attempt, id, 2, enforced)
	if err != nil || g == nil || len(g.folders) != 1 || g.folders["memory"] != own {
		t.Errorf("got %+v, %v", g, err)
	}
	if g, err := openGroup(h, t.TempDir(), id, 2, enforced[1:]); g != nil || err != nil {
		t.Errorf("without a group: %+v, %v", g, err)
	}
}

// A folder of groups that an attempt's folder names is removed only when it is the attempt's own.
func TestRemoveNothingElse(t *testing.T) {
	other := t.TempDir()
	dir := tree(t, map[string]string{foldersFile: other + "\n/etc\n"})
	if err := Remove(dir, id, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// While the groups cannot be read, the attempt's folder keeps their names.
func TestRemoveLater(t *testing.T) {
	top := t.TempDir()
	folder := filepath.Join(top, nameOf(id, 1))
	dir := tree(t, map[string]string{foldersFile: folder + "\n"})
	proc := tree(t, map[string]string{"mountinfo": "30 23 0:26 / " + top + " rw,nosuid - cgroup2 cgroup2 rw\n", "cgroup/unreadable": ""})
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeSeen(proc, dir, id, 1); err == nil {
		t.Error("no error although the groups cannot be read")
	}
	if err := os.RemoveAll(filepath.Join(proc, "cgroup")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "cgroup"), []byte("0::/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeSeen(proc, dir, id, 1); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the group stays: %v", err)
	}
}

// Empty files count, a file with two names counts once, and no walk comes before it can be needed.
func TestMeasure(t *testing.T) {
	dir := tree(t, map[string]string{"a/1": "", "a/2": "", "b": strings.Repeat("x", 100<<10)})
	if err := os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	used := measure([]string{dir})
	if used < 116<<10 || used > 180<<10 {
		t.Errorf("the folder holds %d", used)
	}
	m := meter{dirs: []string{dir}, limit: 64 << 10}
	if got, over := m.over(time.Now()); !over || got != used {
		t.Errorf("it holds %d, over %v", got, over)
	}
}
