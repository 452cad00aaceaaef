package git_test

import (
	"path/filepath"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
)

// switchingGit is a git whose user switches to a new branch just before the command WHEN.
const switchingGit = `#!/bin/sh
case " $* " in *" $WHEN "*)
	rm "$ONCE" 2>/dev/null && (unset GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE; "$REAL_GIT" switch -q -c feature) ;;
esac
exec "$REAL_GIT" "$@"
`

// The user switches to a new branch while a landing or its undo is about to move the old one. agency
// notices the switch before git begins. If it is too late, the error names the branch that git moved.
func TestSwitchDuringAMove(t *testing.T) {
	for _, c := range []struct {
		when string
		code agency.Code
	}{
		{"ls-files", agency.CodeTargetDirty},
		{"merge", agency.CodeInvalidState},
		{"diff-index", agency.CodeTargetDirty},
		{"reset", agency.CodeInvalidState},
	} {
		t.Run(c.when, func(t *testing.T) {
			base := tempDir(t)
			root := filepath.Join(base, "repo")
			newRepo(t, root)
			g := git.New(30*time.Second, scratch, scratch)
			repo, err := g.Discover(t.Context(), root)
			check(t, err)
			from, to := sh(t, root, "rev-parse", "HEAD"), sh(t, root, "rev-parse", "HEAD~1")
			move := g.Back
			if c.when == "ls-files" || c.when == "merge" {
				sh(t, root, "reset", "-q", "--hard", to)
				from, to, move = to, from, g.FastForward
			}
			once := filepath.Join(base, "once")
			write(t, once, "")
			t.Setenv("WHEN", c.when)
			t.Setenv("ONCE", once)
			replaceGit(t, base, switchingGit)
			wantCode(t, move(t.Context(), repo, root, "main", from, to, "land"), c.code)
			want := from
			if c.code == agency.CodeInvalidState {
				want = to
			}
			if main, feature := sh(t, root, "rev-parse", "main"), sh(t, root, "rev-parse", "feature"); main != from || feature != want {
				t.Errorf("main is at %s, feature at %s, want %s and %s", main, feature, from, want)
			}
		})
	}
}

// A branch that is checked out since agency looked is not moved without its files.
func TestMoveBranchThatIsCheckedOut(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	from, to := sh(t, repo.Root, "rev-parse", "HEAD~1"), sh(t, repo.Root, "rev-parse", "HEAD")
	at := filepath.Join(tempDir(t), "linked")
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "target", at, from)
	wantCode(t, g.MoveBranch(t.Context(), repo, "target", from, to, "land"), agency.CodeTargetDirty)
	if got := sh(t, at, "rev-parse", "target"); got != from {
		t.Errorf("target is at %s", got)
	}
	sh(t, at, "switch", "-q", "--detach")
	check(t, g.MoveBranch(t.Context(), repo, "target", from, to, "land"))
}
