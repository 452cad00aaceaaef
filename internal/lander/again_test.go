package lander_test

import (
	"os"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
	"agency/internal/lander"
)

// A second landing begins where the first ended, which was squashed, so that git does not know:
// lines that both landings change do not conflict, and nothing lands twice.
func TestSecondLanding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("new.txt", "one\n")
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		t.Fatal(err)
	}
	b.write(b.checkout, "users.txt", "of the user\n")
	b.git(b.checkout, "add", "-A")
	b.git(b.checkout, "commit", "-qm", "of the user")
	b.commit("new.txt", "two\n")
	b.lands(map[string]string{"new.txt": "two", "users.txt": "of the user"}, 1)
}

// So it does when the first landing included files that were not committed, and that the agent
// commits afterwards, changed or not.
func TestLeftoversCommittedLater(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"as they were": "left over", "changed": "done"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("new.txt", "one\n")
			b.write(b.worktree, "left.txt", "left over\n")
			if _, err := b.land(agency.LandingSettings{}); err != nil {
				t.Fatal(err)
			}
			b.commit("left.txt", last+"\n")
			b.commit("new.txt", "two\n")
			b.lands(map[string]string{"new.txt": "two", "left.txt": last}, 2)
			b.write(b.worktree, "left.txt", "more\n")
			b.lands(map[string]string{"new.txt": "two", "left.txt": "more"}, 0)
		})
	}
}

// A run whose worktree is gone has nothing that its landing did not have: its branch, or a snapshot of
// before, would take back what landed without a commit.
func TestLandingAfterTheWorktreeIsGone(t *testing.T) {
	t.Parallel()
	for name, snapshot := range map[string]bool{"branch": false, "older snapshot": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("new.txt", "one\n")
			b.write(b.worktree, "left.txt", "early\n")
			if snapshot {
				if _, err := b.scratch(t).Snapshot(t.Context(), b.rec.repo, b.worktree, "main", agency.SnapshotRefs("r_work")+"1", "early"); err != nil {
					t.Fatal(err)
				}
			}
			b.write(b.worktree, "left.txt", "left over\n")
			if _, err := b.land(agency.LandingSettings{}); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(b.worktree); err != nil {
				t.Fatal(err)
			}
			if _, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeNothingToLand) {
				t.Errorf("landed again: %v", err)
			}
			if got := b.git(b.checkout, "show", "main:left.txt"); got != "left over" {
				t.Errorf("left.txt is %q", got)
			}
		})
	}
}

// scratch returns another git of agency's.
func (b *bench) scratch(t *testing.T) *git.Git {
	g := git.New(time.Minute, t.TempDir(), t.TempDir())
	g.Claims = t.TempDir()
	return g
}

// commit commits a file in the worktree of the run, with all that is left over.
func (b *bench) commit(name, text string) {
	b.t.Helper()
	b.write(b.worktree, name, text)
	b.git(b.worktree, "add", "-A")
	b.git(b.worktree, "commit", "-qm", "write "+name)
}

// lands reviews and lands the run, which has so many commits since the landing before. Then the
// files of the user's checkout hold these texts.
func (b *bench) lands(files map[string]string, commits int) {
	b.t.Helper()
	review, err := b.lander.Review(b.t.Context(), lander.Request{Ref: "work"})
	if err != nil || review.Obstacle != nil || len(review.Commits) != commits {
		b.t.Fatalf("the review has %+v, %v", review, err)
	}
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		b.t.Fatal(err)
	}
	for name, want := range files {
		if got := b.git(b.checkout, "show", "main:"+name); got != want {
			b.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeNothingToLand) {
		b.t.Errorf("landed again: %v", err)
	}
}

// What the user reverted does not come back with the work that the agent adds then, by any method.
func TestLandingAfterARevert(t *testing.T) {
	t.Parallel()
	for _, method := range []agency.LandingMethod{agency.LandSquash, agency.LandMerge, agency.LandRebase} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("first.txt", "one\n")
			if _, err := b.land(agency.LandingSettings{}); err != nil {
				t.Fatal(err)
			}
			b.git(b.checkout, "revert", "--no-edit", "HEAD")
			b.commit("second.txt", "two\n")
			if _, err := b.land(agency.LandingSettings{Method: method}); err != nil {
				t.Fatal(err)
			}
			if got := b.git(b.checkout, "ls-tree", "--name-only", "main"); got != "a.txt\nb.txt\nc.txt\nsecond.txt" {
				t.Errorf("main has %q", got)
			}
		})
	}
}

// What the user reverted does not come back after a later landing was thrown away: the one before
// still counts.
func TestLandingAfterOneThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("first.txt", "one\n")
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		t.Fatal(err)
	}
	b.git(b.checkout, "revert", "--no-edit", "HEAD")
	b.commit("second.txt", "two\n")
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		t.Fatal(err)
	}
	b.git(b.checkout, "reset", "-q", "--hard", "HEAD~1")
	b.lands(map[string]string{"second.txt": "two"}, 1)
	if got := b.git(b.checkout, "ls-tree", "--name-only", "main"); got != "a.txt\nb.txt\nc.txt\nsecond.txt" {
		t.Errorf("main has %q", got)
	}
}

// Where the agent merged the target meanwhile, the lines that the user changes afterwards, or takes
// back, do not conflict.
func TestLandingAfterTheAgentMerged(t *testing.T) {
	t.Parallel()
	for _, method := range []agency.LandingMethod{agency.LandSquash, agency.LandMerge} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("first.txt", "one\n")
			if _, err := b.land(agency.LandingSettings{}); err != nil {
				t.Fatal(err)
			}
			write := func(name, text string) {
				b.write(b.checkout, name, text)
				b.git(b.checkout, "add", "-A")
				b.git(b.checkout, "commit", "-qm", "of the user")
			}
			write("users.txt", "early\n")
			write("back.txt", "soon gone\n")
			b.git(b.worktree, "merge", "-q", "--no-edit", "main")
			b.git(b.checkout, "revert", "--no-edit", "HEAD")
			write("users.txt", "late\n")
			b.commit("first.txt", "two\n")
			if _, err := b.land(agency.LandingSettings{Method: method}); err != nil {
				t.Fatal(err)
			}
			if got := b.git(b.checkout, "grep", "-h", "", "main", "--", "first.txt", "users.txt", "back.txt"); got != "two\nlate" {
				t.Errorf("main has %q", got)
			}
		})
	}
}
