package lander_test

import (
	"testing"

	"agency"
	"agency/internal/lander"
)

// A chain lands only the commits that were looked at, since the user may have approved these. Others
// with the same files do not take their place.
func TestChainOfOtherCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	look := func() (*lander.Link, string) {
		t.Helper()
		c, err := b.lander.Chain(t.Context(), "main", []agency.RunID{"r_work"}, nil, nil)
		if err != nil || c.Links[0].Err != nil {
			t.Fatal(err, c.Links[0].Err)
		}
		return &c.Links[0], c.TargetOld
	}
	b.commit("new.txt", "of the run\n")
	link, on := look()
	b.git(b.worktree, "commit", "-q", "--amend", "-m", "another message")
	if _, err := b.lander.LandChain(t.Context(), "main", []*lander.Link{link}, nil, on, link.Tree); !agency.IsCode(err, agency.CodeTargetMoved) {
		t.Errorf("landed other commits: %v", err)
	}
	b.states()
	link, on = look()
	results, err := b.lander.LandChain(t.Context(), "main", []*lander.Link{link}, nil, on, link.Tree)
	if err != nil || results[0].Landing.Source != b.git(b.worktree, "rev-parse", "HEAD") {
		t.Errorf("%+v, %v", results, err)
	}
}
