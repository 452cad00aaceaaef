package daemon

import (
	"context"
	"testing"
)

// An agent that does not read its answers delays its own next request, and nobody else's.
func TestTurns(t *testing.T) {
	t.Parallel()
	turns := newTurns()
	var answers []func()
	for range turnsOfATree {
		worked, answered, ok := turns.take(t.Context(), "slow")
		if !ok {
			t.Fatal("not admitted")
		}
		worked()
		answers = append(answers, answered)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := turns.take(over, "slow"); ok {
		t.Error("a third request of the same tree was admitted")
	}
	for i := range turnsOfAll {
		worked, answered, ok := turns.take(t.Context(), string(rune('a'+i)))
		if !ok {
			t.Fatal("another tree was not admitted")
		}
		answers = append(answers, worked, answered)
	}
	if _, _, ok := turns.take(over, "last"); ok {
		t.Error("more are worked on than may be")
	}
	for _, f := range answers {
		f()
	}
	if len(turns.trees) > 0 || len(turns.all) > 0 {
		t.Errorf("left: %v, %d", turns.trees, len(turns.all))
	}
}
