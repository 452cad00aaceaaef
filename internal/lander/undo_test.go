package lander_test

import (
	"testing"

	"agency"
)

// A landing is not taken back where it would not have been made: from the branch of an agent that
// works, from a checkout that the settings protect, and through another name of a branch. Settings
// that came with the landing itself do not count.
func TestUndoOfATargetThatMayNotMove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(b.worktree, agency.ProjectFile, "of the run")
	b.lander.Parse = func(path string, _ []byte) (agency.Project, error) {
		return agency.Project{}, agency.Errorf(agency.CodeConfigInvalid, "%s cannot be read", path)
	}
	landed, err := b.land(agency.LandingSettings{})
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(what string, code agency.Code) {
		t.Helper()
		if _, err := b.lander.Undo(t.Context(), string(landed.Landing.ID)); !agency.IsCode(err, code) {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
		b.states(agency.LandingLanded)
	}
	b.rec.live = []agency.Run{{Name: "other", Branch: "main"}}
	refuses("an agent at work", agency.CodeInvalidState)
	b.rec.live = nil

	settings := b.lander.Settings()
	b.lander.Settings = func() agency.LandingSettings { return settings }
	b.write(b.checkout, "a.txt", "of the user\n")
	for _, settings.Checkout = range []string{agency.CheckoutNever, agency.CheckoutClean} {
		refuses("checkout = "+settings.Checkout, agency.CodeTargetDirty)
	}
	settings.Checkout = agency.CheckoutDisjoint

	b.git(b.checkout, "switch", "-q", "-c", "trunk")
	b.git(b.checkout, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
	refuses("another name of a branch", agency.CodeBadRef)
	b.git(b.checkout, "symbolic-ref", "--delete", "refs/heads/main")
	b.git(b.checkout, "branch", "main", "trunk")
	if _, err := b.lander.Undo(t.Context(), string(landed.Landing.ID)); err != nil {
		t.Error(err)
	}
}
