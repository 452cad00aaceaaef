package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
)

// moving is a branch that a landing moves from one commit to another: the file a changes, new comes
// and sub/b goes.
type moving struct {
	t        *testing.T
	git      *git.Git
	repo     agency.Repo
	from, to string
	since    time.Time // when the landing began
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	g, repo := setup(t)
	g.Claims = tempDir(t)
	m := &moving{t: t, git: g, repo: repo, from: sh(t, repo.Root, "rev-parse", "main")}
	sh(t, repo.Root, "switch", "-q", "-c", "work")
	write(t, m.path("a"), "changed\n")
	write(t, m.path("new"), "new\n")
	sh(t, repo.Root, "rm", "-q", "sub/b")
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-qm", "work")
	m.to = sh(t, repo.Root, "rev-parse", "work")
	sh(t, repo.Root, "switch", "-q", "main")
	m.since = time.Now()
	return m
}

func (m *moving) path(name string) string { return filepath.Join(m.repo.Root, name) }

// old makes a file that is older than the landing.
func (m *moving) old(name, text string) {
	m.t.Helper()
	write(m.t, m.path(name), text)
	before := m.since.Add(-time.Minute)
	check(m.t, os.Chtimes(m.path(name), before, before))
}

// settle settles the landing, whose branch must stand at a commit afterwards.
func (m *moving) settle(worktree string) (bool, error) {
	m.t.Helper()
	return m.git.SettleMove(m.t.Context(), m.repo, worktree, "main", m.from, m.to, m.since)
}

func (m *moving) read(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(m.path(name))
	check(m.t, err)
	return string(data)
}

// What cannot be read of a checkout does not tell that its branch has not moved.
func TestSettleMoveOfAnUnreadableCheckout(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	at := filepath.Join(tempDir(t), "linked")
	sh(t, m.repo.Root, "switch", "-q", "work")
	sh(t, m.repo.Root, "worktree", "add", "-q", at, "main")
	head := filepath.Join(m.repo.CommonDir, "worktrees", "linked", "HEAD")
	was := hide(t, head)
	if moved, err := m.settle(at); err == nil {
		t.Errorf("settled, moved: %v", moved)
	}
	was()
	if moved, err := m.settle(at); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	sh(t, at, "switch", "-q", "-c", "third")
	if moved, err := m.settle(at); err != nil || moved {
		t.Errorf("after a switch, moved: %v, %v", moved, err)
	}
	check(t, os.RemoveAll(at))
	if moved, err := m.settle(at); err != nil || moved {
		t.Errorf("without the checkout, moved: %v, %v", moved, err)
	}
}

// hide makes a file unreadable, for root too, until the result is called.
func hide(t *testing.T, path string) (show func()) {
	t.Helper()
	check(t, os.Rename(path, path+".hidden"))
	check(t, os.Mkdir(path, 0o700))
	return func() {
		check(t, os.Remove(path))
		check(t, os.Rename(path+".hidden", path))
	}
}

// Git first removes the files that go, and then writes the others. When it is killed in between, those
// it removed come back. A file that the user had deleted before stays deleted.
func TestSettleMoveThatOnlyRemovedFiles(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	write(t, filepath.Join(m.repo.CommonDir, "info", "attributes"), "a filter=deadly\n")
	if out, err := try(m.repo.Root, "-c", "filter.deadly.smudge=kill -9 $PPID", "merge", "-q", "--ff-only", m.to); err == nil {
		t.Fatalf("git survived: %s", out)
	}
	if left := sh(t, m.repo.Root, "ls-files", "--deleted"); !strings.Contains(left, "sub/b") {
		t.Fatalf("git removed %q", left)
	}
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	if left := sh(t, m.repo.Root, "status", "--porcelain"); left != "" {
		t.Errorf("the checkout differs: %s", left)
	}
	check(t, os.Remove(m.path("sub/b")))
	before := m.since.Add(-time.Minute)
	check(t, os.Chtimes(m.path("sub"), before, before))
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	if left := sh(t, m.repo.Root, "ls-files", "--deleted"); left != "sub/b" {
		t.Errorf("deleted is %q, want only what the user deleted", left)
	}
}

// A file that the user made before the move is the user's, even with the content that the move
// brings. Those that git wrote are taken back.
func TestSettleMoveLeavesTheUsersFiles(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	m.old("new", "new\n")
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Fatalf("moved: %v, %v", moved, err)
	}
	if got := m.read("new"); got != "new\n" {
		t.Errorf("new is %q", got)
	}
	write(t, m.path("a"), "changed\n")
	_, err := m.settle(m.repo.Root)
	wantCode(t, err, agency.CodeTargetDirty)
	if files, ok := agency.AsError(err).Details["files"].([]string); !ok || strings.Join(files, " ") != "new" {
		t.Errorf("named are %v", agency.AsError(err).Details)
	}
	check(t, os.Remove(m.path("new")))
	write(t, m.path("new"), "ne") // as a git that is killed leaves it
	write(t, filepath.Join(m.repo.CommonDir, "index.lock"), "")
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Fatalf("moved: %v, %v", moved, err)
	}
	if status := sh(t, m.repo.Root, "status", "--porcelain"); status != "" {
		t.Errorf("left is %q", status)
	}
}

// A file that git was told not to look at keeps what the user wrote, also where git takes it for
// unchanged: its size is the same, and it was written in the same second.
func TestFastForwardLeavesHiddenFiles(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--skip-worktree", "--assume-unchanged"} {
		m := newMoving(t)
		sh(t, m.repo.Root, "config", "core.trustctime", "false")
		sh(t, m.repo.Root, "update-index", flag, "a")
		was, err := os.Lstat(m.path("a"))
		check(t, err)
		mine := strings.Repeat("x", int(was.Size()))
		write(t, m.path("a"), mine)
		check(t, os.Chtimes(m.path("a"), was.ModTime(), was.ModTime()))
		later := time.Now().Add(time.Minute)
		check(t, os.Chtimes(filepath.Join(m.repo.CommonDir, "index"), later, later))
		err = m.git.FastForward(t.Context(), m.repo, m.repo.Root, "main", m.from, m.to, "test")
		wantCode(t, err, agency.CodeTargetDirty)
		if got := m.read("a"); got != mine {
			t.Errorf("%s: a is %q", flag, got)
		}
	}
}

// A submodule that git was told not to look at is moved in the index alone, as git does.
func TestFastForwardMovesHiddenSubmodule(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	link := func(branch, commit string) string {
		sh(t, m.repo.Root, "switch", "-q", branch)
		sh(t, m.repo.Root, "update-index", "--add", "--cacheinfo", "160000,"+commit+",lib")
		sh(t, m.repo.Root, "commit", "-qm", "lib")
		return sh(t, m.repo.Root, "rev-parse", branch)
	}
	from := link("main", m.from)
	check(t, os.MkdirAll(m.path("lib"), 0o755))
	sh(t, m.repo.Root, "branch", "-f", "work", "main")
	to := link("work", m.to)
	sh(t, m.repo.Root, "switch", "-q", "main")
	sh(t, m.repo.Root, "update-index", "--skip-worktree", "lib")
	check(t, m.git.FastForward(t.Context(), m.repo, m.repo.Root, "main", from, to, "test"))
	if got := sh(t, m.repo.Root, "ls-files", "-s", "lib"); !strings.Contains(got, m.to) {
		t.Errorf("the index has %q", got)
	}
}

// Commits of the user on top of a landing, or of one that is to be taken back, do not hide how far
// it came.
func TestSettleMoveAndTheUsersCommits(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	sh(t, m.repo.Root, "merge", "-q", "--ff-only", m.to)
	sh(t, m.repo.Root, "commit", "-q", "--allow-empty", "-m", "on top")
	if moved, err := m.settle(m.repo.Root); err != nil || !moved {
		t.Errorf("landed: %v, %v", moved, err)
	}
	back := func() (bool, error) {
		return m.git.SettleMove(t.Context(), m.repo, m.repo.Root, "main", m.to, m.from, m.since)
	}
	if moved, err := back(); err != nil || moved {
		t.Errorf("taken back: %v, %v", moved, err)
	}
	sh(t, m.repo.Root, "reset", "-q", "--hard", m.from)
	sh(t, m.repo.Root, "commit", "-q", "--allow-empty", "-m", "afterwards")
	if moved, err := back(); err != nil || !moved {
		t.Errorf("taken back: %v, %v", moved, err)
	}
}

// A branch that git may have checked out, or rebases, where that cannot be read is not moved.
func TestCheckoutOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	at := filepath.Join(tempDir(t), "linked")
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "target", at)
	entry := filepath.Join(repo.CommonDir, "worktrees", "linked")
	write(t, filepath.Join(entry, "rebase-merge", "head-name"), "refs/heads/other\n")
	for _, file := range []string{"rebase-merge/head-name", "HEAD", "gitdir"} {
		show := hide(t, filepath.Join(entry, file))
		at, err := g.Checkout(t.Context(), repo, "target")
		if !agency.IsCode(err, agency.CodeTargetDirty) {
			t.Errorf("%s: %q, %v", file, at, err)
		}
		show()
	}
	check(t, os.RemoveAll(filepath.Join(entry, "rebase-merge")))
	if got, err := g.Checkout(t.Context(), repo, "target"); err != nil || got != at {
		t.Errorf("%q, %v", got, err)
	}
}

// A landing that made a folder of a file, or a file of a folder, is taken back, but not where a
// file of the user is in the way, ignored or not: that stays.
func TestBackOfFoldersAndFiles(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	path := func(name string) string { return filepath.Join(repo.Root, name) }
	write(t, path(".gitignore"), "*.log\nsub\n")
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-qm", "ignore")
	from := sh(t, repo.Root, "rev-parse", "main")
	sh(t, repo.Root, "rm", "-q", "a", "sub/b")
	write(t, path("a/x"), "x\n")
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-qm", "work")
	to := sh(t, repo.Root, "rev-parse", "main")
	for _, file := range []string{"a/users.log", "a/users", "sub"} {
		write(t, path(file), "of the user\n")
		err := g.Back(t.Context(), repo, repo.Root, "main", to, from, "undo")
		wantCode(t, err, agency.CodeTargetDirty)
		if data, err := os.ReadFile(path(file)); err != nil || string(data) != "of the user\n" {
			t.Errorf("%s is %q, %v", file, data, err)
		}
		if named, ok := agency.AsError(err).Details["files"].([]string); !ok || strings.Join(named, " ") != file {
			t.Errorf("named are %v", agency.AsError(err).Details)
		}
		check(t, os.Remove(path(file)))
	}
	check(t, g.Back(t.Context(), repo, repo.Root, "main", to, from, "undo"))
	if status := sh(t, repo.Root, "status", "--porcelain"); status != "" || sh(t, repo.Root, "rev-parse", "main") != from {
		t.Errorf("after the undo: %q", status)
	}
	check(t, g.FastForward(t.Context(), repo, repo.Root, "main", from, to, "land"))
}

// A git that was killed as it began leaves the lock of ORIG_HEAD, which is taken away. One that
// another git may hold stays.
func TestSettleMoveThatOnlyBegan(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	lock := filepath.Join(m.repo.CommonDir, "ORIG_HEAD.lock")
	for _, c := range []struct {
		name, holds string
		age         time.Duration
		stays       bool
	}{
		{"of the killed git", m.from + "\n", 0, false},
		{"of before the landing", m.from + "\n", time.Minute, true},
		{"of another move", m.to + "\n", 0, true},
		{"just made", "", 0, true},
	} {
		write(t, lock, c.holds)
		at := time.Now().Add(-c.age)
		check(t, os.Chtimes(lock, at, at))
		if moved, err := m.settle(m.repo.Root); err != nil || moved {
			t.Errorf("%s: moved: %v, %v", c.name, moved, err)
		}
		if _, err := os.Lstat(lock); (err == nil) != c.stays {
			t.Errorf("%s: the lock is there: %v", c.name, err == nil)
		}
	}
	check(t, os.Remove(lock))
	check(t, m.git.FastForward(t.Context(), m.repo, m.repo.Root, "main", m.from, m.to, "land"))
}

// A git that was killed after it had moved the branch leaves the lock of HEAD, with which no commit
// is possible.
func TestSettleMoveThatAlmostEnded(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	sh(t, m.repo.Root, "merge", "-q", "--ff-only", m.to)
	lock := filepath.Join(m.repo.CommonDir, "HEAD.lock")
	for _, old := range []bool{true, false} {
		write(t, lock, "")
		if old {
			at := m.since.Add(-time.Minute)
			check(t, os.Chtimes(lock, at, at))
		}
		if moved, err := m.settle(m.repo.Root); err != nil || !moved {
			t.Errorf("moved: %v, %v", moved, err)
		}
		if _, err := os.Lstat(lock); (err == nil) != old {
			t.Errorf("a lock of before the landing: %v, and there: %v", old, err == nil)
		}
	}
	sh(t, m.repo.Root, "commit", "-q", "--allow-empty", "-m", "on top")
}

// A git that was killed as it moved the branch leaves the lock of HEAD. When the user takes one of
// the files back before that is settled, the others are taken back too, and the lock with them.
func TestSettleMoveThatTheUserTookBack(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	sh(t, m.repo.Root, "read-tree", "-m", "-u", "main", m.to)
	lock := filepath.Join(m.repo.CommonDir, "HEAD.lock")
	write(t, lock, "")
	sh(t, m.repo.Root, "reset", "-q", "--", "a")
	sh(t, m.repo.Root, "checkout", "-q", "--", "a")
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the lock is still there")
	}
	if left := sh(t, m.repo.Root, "status", "--porcelain"); left != "" {
		t.Errorf("the checkout differs: %s", left)
	}
	check(t, m.git.FastForward(t.Context(), m.repo, m.repo.Root, "main", m.from, m.to, "land"))
}

// A commit that the user makes while git moves the files keeps the branch from moving. The files are
// taken back then, but not those that the user committed.
func TestSettleMoveThatTheUserOvertook(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	sh(t, m.repo.Root, "read-tree", "-m", "-u", "main", m.to)
	write(t, m.path("users"), "of the user\n")
	sh(t, m.repo.Root, "add", "users", "a")
	sh(t, m.repo.Root, "commit", "-qm", "overtakes", "--", "users", "a")
	lock := filepath.Join(m.repo.CommonDir, "HEAD.lock")
	write(t, lock, "")
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the lock is still there")
	}
	if left := sh(t, m.repo.Root, "status", "--porcelain"); left != "" {
		t.Errorf("the checkout differs: %s", left)
	}
	if m.read("a") != "changed\n" {
		t.Errorf("a holds %q, which the user did not commit", m.read("a"))
	}
}

// A file that a sparse checkout leaves out stays out when a move is taken back.
func TestSettleMoveInASparseCheckout(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	sh(t, m.repo.Root, "sparse-checkout", "set", "--no-cone", "/*", "!/a")
	sh(t, m.repo.Root, "read-tree", "-m", "-u", "main", m.to)
	sh(t, m.repo.Root, "reset", "-q", "--", "sub/b") // or the index would be as after
	if moved, err := m.settle(m.repo.Root); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
	if left := sh(t, m.repo.Root, "status", "--porcelain"); left != "" {
		t.Errorf("the checkout differs: %s", left)
	}
	if is := sh(t, m.repo.Root, "ls-files", "-t", "--", "a"); is != "S a" {
		t.Errorf("the index has %q, and no file that is left out", is)
	}
}
