package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
)

// work returns the object of the agent's file.
func (h *hostile) work(dir string) string {
	return sh(h.t, dir, "hash-object", "-w", h.in("a"))
}

func (h *hostile) objects(parts ...string) string {
	return filepath.Join(append([]string{h.repo.CommonDir, "objects"}, parts...)...)
}

func (h *hostile) move(from, to string) {
	h.t.Helper()
	check(h.t, os.MkdirAll(filepath.Dir(to), 0o755))
	check(h.t, os.Rename(from, to))
	check(h.t, os.Symlink(to, from))
}

// These attacks make work count as saved that would be lost with the worktree. Each either makes
// the snapshot fail, or the snapshot is complete.
var lossAttacks = map[string]struct {
	do    func(h *hostile)
	fails bool
}{
	"the repository borrows objects from the worktree": {func(h *hostile) {
		sh(h.t, h.path, "init", "-q", "--bare", ".x")
		h.work(h.in(".x"))
		write(h.t, h.objects("info", "alternates"), h.in(".x", "objects")+"\n")
	}, true},
	"it borrows them by way of another": {func(h *hostile) {
		sh(h.t, h.path, "init", "-q", "--bare", ".x")
		h.work(h.in(".x"))
		other := tempDir(h.t)
		write(h.t, filepath.Join(other, "info", "alternates"), h.in(".x", "objects")+"\n")
		write(h.t, h.objects("info", "alternates"), other+"\n")
	}, true},
	"it keeps all objects there": {func(h *hostile) { h.move(h.objects(), h.in(".x", "objects")) }, true},
	"it keeps some of them there": {func(h *hostile) {
		id := h.work(h.path)
		h.move(h.objects(id[:2]), h.in(".x", id[:2]))
	}, true},
	"it keeps a pack there": {func(h *hostile) {
		h.work(h.path)
		sh(h.t, h.path, "repack", "-qad")
		packs, err := filepath.Glob(h.objects("pack", "*.pack"))
		check(h.t, err)
		h.move(packs[0], h.in(".x", "pack"))
	}, true},
	"it keeps agency's refs there": {func(h *hostile) {
		check(h.t, os.MkdirAll(filepath.Join(h.repo.CommonDir, "refs", "agency"), 0o755))
		h.move(filepath.Join(h.repo.CommonDir, "refs", "agency"), h.in(".x", "refs"))
	}, true},
	"an object is not what it is called": {func(h *hostile) {
		id := h.work(h.path)
		check(h.t, os.Chmod(h.objects(id[:2], id[2:]), 0o644))
		data, err := os.ReadFile(h.objects("pack", "..", id[:2], id[2:]))
		check(h.t, err)
		write(h.t, h.objects(id[:2], id[2:]), string(data[:len(data)-1])+"x")
	}, true},
	"a file stands where the snapshot's name begins": {func(h *hostile) {
		write(h.t, filepath.Join(h.repo.CommonDir, "refs", "agency", "snapshots"), h.base+"\n")
	}, true},
	"another object is shown in its place": {func(h *hostile) {
		id := h.work(h.path)
		sh(h.t, h.path, "replace", "-f", id, sh(h.t, h.path, "rev-parse", "HEAD:sub/b"))
	}, false},
	"history is cut off":        {func(h *hostile) { write(h.t, filepath.Join(h.repo.CommonDir, "info", "grafts"), h.base+"\n") }, false},
	"files taken for unchanged": {func(h *hostile) { sh(h.t, h.path, "update-index", "--assume-unchanged", "a") }, false},
	"files taken for absent":    {func(h *hostile) { sh(h.t, h.path, "update-index", "--skip-worktree", "a") }, false},
	"HEAD on no branch":         {func(h *hostile) { write(h.t, filepath.Join(h.admin, "HEAD"), "ref: refs/heads/none\n") }, false},
	"the index is gone":         {func(h *hostile) { check(h.t, os.Remove(filepath.Join(h.admin, "index"))) }, false},
	"the index is a pipe": {func(h *hostile) {
		check(h.t, os.Remove(filepath.Join(h.admin, "index")))
		sh(h.t, h.path, "-c", "alias.pipe=!mkfifo", "pipe", filepath.Join(h.admin, "index"))
	}, true},
	"the worktree's entry is another's": {func(h *hostile) {
		write(h.t, filepath.Join(h.admin, "gitdir"), filepath.Join(tempDir(h.t), ".git")+"\n")
	}, true},
}

// Work that counts as saved is in the recorded repository after the worktree is removed.
func TestHostileLoss(t *testing.T) {
	t.Parallel()
	for name, attack := range lossAttacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			attack.do(h)
			if facts, err := h.g.Inspect(t.Context(), h.repo, h.path, h.base); err == nil && !facts.Dirty {
				t.Error("the worktree looks clean")
			}
			saved, err := h.g.Snapshot(t.Context(), h.repo, h.path, h.base, "refs/agency/snapshots/r1/1", "work")
			if attack.fails {
				if err == nil {
					t.Fatal("the snapshot was called saved")
				}
				if e := agency.AsError(err); e.Code == agency.CodeInternal && e.Message == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			check(t, err)
			check(t, h.g.RemoveWorktree(t.Context(), h.repo, h.path))
			for file, want := range map[string]string{"a": "the work", "new": "more work"} {
				if got := sh(t, h.repo.CommonDir, "--no-replace-objects", "cat-file", "blob", saved.Ref+":"+file); got != want {
					t.Errorf("%s is saved as %q", file, got)
				}
			}
		})
	}
}
