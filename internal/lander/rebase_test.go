package lander_test

import (
	"context"
	"testing"

	"agency"
	"agency/internal/lander"
)

// losing makes commits again by a function of its own.
type losing struct {
	lander.Git
	rebase rebase
}

// rebase is Rebase as a test has it go wrong: empty is how many commits it calls empty.
type rebase func(ctx context.Context, l losing, repo agency.Repo, target, source string) (tip string, empty int, err error)

func (l losing) Rebase(
	ctx context.Context, repo agency.Repo, _ agency.Environ, target, source, _ string, _ func(string) string,
) (string, int, error) {
	return l.rebase(ctx, l, repo, target, source)
}

// without takes the run's first commit for an empty one.
func without(ctx context.Context, l losing, repo agency.Repo, target, source string) (string, int, error) {
	first, err := l.ResolveCommit(ctx, repo.Root, source+"~1")
	if err != nil {
		return "", 0, err
	}
	tip, _, err := l.Git.Rebase(ctx, repo, nil, target, source, first, func(message string) string { return message })
	return tip, 1, err
}

// asOne makes one commit of all, which has their whole change.
func asOne(ctx context.Context, l losing, repo agency.Repo, target, source string) (string, int, error) {
	tip, err := l.Squash(ctx, repo, nil, target, source, "", func() (string, error) { return "one", nil })
	return tip, 0, err
}

// A rebase that loses a commit does not land, also where both sides changed its file, which could
// then be anything.
func TestRebaseThatLosesACommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	commit := func(dir, text string) {
		b.write(dir, "d.txt", text)
		b.git(dir, "add", "-A")
		b.git(dir, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "change")
	}
	commit(b.checkout, "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	b.git(b.worktree, "merge", "-q", "--ff-only", "main")
	commit(b.worktree, "1 of the run\n2\n3\n4\n5\n6\n7\n8\n9\n")
	commit(b.worktree, "1 of the run\n2\n3\n4\n5 of the run\n6\n7\n8\n9\n")
	commit(b.checkout, "1\n2\n3\n4\n5\n6\n7\n8\n9 of the user\n")
	old, sound := b.git(b.checkout, "rev-parse", "main"), b.lander.Git
	for name, rebase := range map[string]rebase{
		"with its change": without, "that is in another one": asOne,
	} {
		b.lander.Git = losing{sound, rebase}
		_, err := b.land(agency.LandingSettings{Method: agency.LandRebase})
		if !agency.IsCode(err, agency.CodeIntegrity) || b.git(b.checkout, "rev-parse", "main") != old {
			t.Errorf("%s: %v", name, err)
		}
		t.Log(err)
	}
	b.lander.Git = sound
	if _, err := b.land(agency.LandingSettings{Method: agency.LandRebase}); err != nil {
		t.Fatal(err)
	}
	if got := b.git(b.checkout, "show", "main:d.txt"); got != "1 of the run\n2\n3\n4\n5 of the run\n6\n7\n8\n9 of the user" {
		t.Errorf("d.txt is %q", got)
	}
}
