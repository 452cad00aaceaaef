package git_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"agency/internal/git"
)

// hookingGit is a git that would run a hook of the configuration when it writes a ref, as git 2.54 and
// newer do: update-ref when it sees the hook, branch and worktree unless hook and event are off.
const hookingGit = `#!/bin/sh
case " $* " in
*" update-ref "*)
	"$REAL_GIT" config hook.a=b.command && : >"$RAN" ;;
*" branch -D "*|*" worktree add "*)
	[ "$("$REAL_GIT" config hook.a=b.enabled)" = false ] || : >"$RAN"
	case " $* " in *" hook.reference-transaction.enabled=false "*) ;; *) : >"$RAN" ;; esac ;;
esac
exec "$REAL_GIT" "$@"
`

// An agent names a hook in the repository's configuration. It does not run when agency writes a ref.
func TestHookOfTheConfiguration(t *testing.T) {
	base := tempDir(t)
	root := filepath.Join(base, "repo")
	newRepo(t, root)
	g := git.New(30*time.Second, scratch, scratch)
	repo, err := g.Discover(t.Context(), root)
	check(t, err)
	commit := sh(t, root, "rev-parse", "HEAD")
	ran := filepath.Join(base, "ran")
	t.Setenv("RAN", ran)
	replaceGit(t, base, hookingGit)
	was, err := g.Record(t.Context(), repo)
	check(t, err)
	sh(t, root, "config", "hook.a=b.event", "reference-transaction")
	sh(t, root, "config", "hook.a=b.command", "true")
	check(t, g.Pin(t.Context(), repo, "refs/agency/x", commit))
	check(t, g.CreateBranch(t.Context(), repo, "x", commit))
	check(t, g.DeleteBranch(t.Context(), repo, "x"))
	check(t, g.AddDetached(t.Context(), repo, filepath.Join(base, "linked"), commit, "MARK=1"))
	if _, err := os.Lstat(ran); err == nil {
		t.Error("the hook ran")
	}
	now, err := g.Record(t.Context(), repo)
	check(t, err)
	if now.GitPrograms == was.GitPrograms {
		t.Error("the hook is not among the programs that the repository names")
	}
}
