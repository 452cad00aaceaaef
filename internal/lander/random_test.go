package lander_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/lander"
)

// history is a random history of a run and of its target. Every line that it writes is written
// once, so that a line tells whose it is, and one that is there twice was landed twice.
type history struct {
	*bench
	random *rand.Rand
	next   int
}

// change makes a commit in a folder, or changes that are not committed: lines in files that are
// there, new files, files that go or have another name. Only the run removes and renames files.
func (h *history) change(dir, side string, commit bool) {
	h.t.Helper()
	for range 1 + h.random.IntN(2) {
		h.next++
		line := fmt.Sprintf("%s line %d\n", side, h.next)
		name := []string{"a.txt", "b.txt", "c.txt"}[h.random.IntN(3)]
		data, err := os.ReadFile(filepath.Join(dir, name))
		switch kind := h.random.IntN(8); {
		case kind < 4 && err == nil:
			lines := strings.SplitAfter(string(data), "\n")
			h.write(dir, name, strings.Join(slices.Insert(lines, h.random.IntN(len(lines)), line), ""))
		case kind == 4 && err == nil && side == "run":
			h.git(dir, "mv", name, fmt.Sprintf("moved-%d.txt", h.next))
		case kind == 5 && err == nil && side == "run":
			h.git(dir, "rm", "-qf", name)
		default:
			h.write(dir, fmt.Sprintf("%s/%d.txt", side, h.next), line)
		}
	}
	if commit {
		h.git(dir, "add", "-A")
		h.git(dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("%s %d", side, h.next))
	}
}

// round lets both sides work, lands, and checks with plain git what became of the target.
func (h *history) round(target string, method agency.LandingMethod) {
	h.t.Helper()
	for range h.random.IntN(3) {
		h.change(h.worktree, "run", true)
	}
	if h.random.IntN(5) == 0 {
		if _, err := h.try(h.worktree, "merge", "-q", "--no-edit", target); err != nil {
			_, _ = h.try(h.worktree, "merge", "--abort") // unless it did not begin
		}
	}
	if h.random.IntN(3) == 0 {
		h.change(h.worktree, "run", false)
	}
	loose := filepath.Join(h.checkout, "loose")
	if err := os.RemoveAll(loose); err != nil {
		h.t.Fatal(err)
	}
	users := h.checkout
	if target != "main" {
		users = filepath.Join(filepath.Dir(h.checkout), "other")
		h.git(h.checkout, "worktree", "add", "-q", users, target)
	}
	for range h.random.IntN(3) {
		h.change(users, "user", true)
	}
	if target != "main" {
		h.git(h.checkout, "worktree", "remove", users)
	}
	h.write(h.checkout, "loose", "of the user\n")

	old, before := h.git(h.checkout, "rev-parse", target), len(h.rec.landings)
	since := h.landed(target) // where the work that has not landed begins
	result, err := h.lander.Land(h.t.Context(), lander.Request{Ref: "work", Asked: agency.LandingSettings{Target: target, Method: method}})
	now := h.git(h.checkout, "rev-parse", target)
	if status := h.git(h.checkout, "status", "--porcelain"); status != "?? loose" {
		h.t.Fatalf("the checkout of the user has %q, after %v", status, err)
	}
	if err != nil {
		if !slices.Contains(refusals(method), agency.AsError(err).Code) {
			h.t.Fatalf("%v", err)
		}
		if now != old || len(h.rec.landings) != before {
			h.t.Fatalf("%s moved from %s to %s, with %d landings, after %v", target, old, now, len(h.rec.landings)-before, err)
		}
		h.t.Logf("%s: %s", target, agency.AsError(err).Code)
		if agency.IsCode(err, agency.CodeNothingToLand) {
			h.complete(since, old, now)
		}
		return
	}
	if now != result.Landing.Candidate {
		h.t.Fatalf("%s is at %s, not at %s", target, now, result.Landing.Candidate)
	}
	h.git(h.checkout, "merge-base", "--is-ancestor", old, now)
	h.complete(since, old, now)
	if _, err := h.lander.Land(h.t.Context(), lander.Request{Ref: "work", Asked: agency.LandingSettings{Target: target, Method: method}}); !agency.IsCode(err, agency.CodeNothingToLand) {
		h.t.Fatalf("landed again: %v", err)
	}
	h.t.Logf("%s: landed %d files", target, len(result.Files))
	if h.random.IntN(4) == 0 {
		h.undo(result.Landing.ID, target, old)
	}
}

// refusals are the errors that a landing may have in a history.
func refusals(method agency.LandingMethod) []agency.Code {
	codes := []agency.Code{agency.CodeMergeConflict, agency.CodeNothingToLand}
	switch method {
	case agency.LandFF:
		codes = append(codes, agency.CodeTargetMoved)
	case agency.LandRebase:
		codes = append(codes, agency.CodeInvalidState)
	case agency.LandSquash, agency.LandMerge:
	}
	return codes
}

// undo takes a landing back, which leaves the target where it was.
func (h *history) undo(id agency.LandingID, target, old string) {
	h.t.Helper()
	if _, err := h.lander.Undo(h.t.Context(), string(id)); err != nil {
		h.t.Fatal(err)
	}
	if back := h.git(h.checkout, "rev-parse", target); back != old {
		h.t.Fatalf("the undo left %s at %s, not at %s", target, back, old)
	}
}

// landed returns the source of the newest landing in a target, or where the run began.
func (h *history) landed(target string) string {
	for _, l := range slices.Backward(h.rec.landings) {
		if l.Target == target && l.State == agency.LandingLanded {
			return l.Source
		}
	}
	return h.rec.run.Commit
}

// everything returns a tree with all that is in the run's worktree, committed or not.
func (h *history) everything() string {
	h.t.Helper()
	index := "GIT_INDEX_FILE=" + filepath.Join(h.t.TempDir(), "index")
	cmd := exec.Command("sh", "-ec", "git add -A; git write-tree")
	cmd.Dir, cmd.Env = h.worktree, append(os.Environ(), index)
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// complete checks that a target that moved from old to now has what the run made since a commit,
// once, and lost only what the run removed.
func (h *history) complete(since, old, now string) {
	h.t.Helper()
	was, work, before, after := h.lines(since), h.lines(h.everything()), h.lines(old), h.lines(now)
	for line := range work {
		if was[line] == 0 && after[line] == 0 {
			h.t.Errorf("%q of the run is missing", line)
		}
	}
	for line, n := range after {
		if n > 1 {
			h.t.Errorf("%q is there %d times", line, n)
		}
	}
	for line := range before {
		if after[line] == 0 && (was[line] == 0 || work[line] > 0) {
			h.t.Errorf("%q of the target is lost", line)
		}
	}
}

// Whatever a run and the user do, a landing adds all of the run's work to the target, once, and
// takes nothing of the target away; or nothing moves.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		method := agency.LandingMethods()[seed%4]
		t.Run(fmt.Sprintf("%s/%d", method, seed), func(t *testing.T) {
			t.Parallel()
			h := &history{bench: newBench(t), random: rand.New(rand.NewPCG(seed, 0))}
			h.git(h.checkout, "branch", "trunk")
			target := []string{"main", "trunk"}[seed/4%2]
			for range 4 {
				h.round(target, method)
			}
		})
	}
}
