package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agency"
	"agency/internal/scheduler"
)

// merging is a fakeRuns whose results can be merged, and that counts the merges requested of it.
type merging struct {
	*fakeRuns
	merge func(ctx context.Context) error

	mu    sync.Mutex
	asked []string
}

func (m *merging) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, fmt.Sprintf(format, args...))
}

func (m *merging) took() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.asked))
}

func (m *merging) Result(ctx context.Context, id agency.RunID) (string, error) {
	r, err := m.Outcome(ctx, id)
	if err != nil {
		return "", err
	}
	m.note("result of %s", r.Run.Name)
	return r.Run.Name, nil
}

func (m *merging) Merge(ctx context.Context, _ *agency.Session, commits []string) (string, error) {
	m.note("merge %s", strings.Join(commits, " "))
	if err := m.merge(ctx); err != nil {
		return "", err
	}
	return "merged", nil
}

// Agents with the same dependencies share one lookup and one merge of the results.
func TestBaseOnce(t *testing.T) {
	t.Parallel()
	m := &merging{
		fakeRuns: newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil }),
		merge:    func(context.Context) error { return nil },
	}
	s := m.engineOf(t, m, t.TempDir(), 4)
	id := create(t, s, agency.Plan{MaxParallel: 8}, "a", "b", "c: a b", "d: a b", "e: a b", "f: b c").ID
	m.until(t, id, "the end", settled)
	if got, want := m.took(), []string{"merge a b", "merge b c", "result of a", "result of b", "result of c"}; !slices.Equal(got, want) {
		t.Errorf("it asked for %q, want %q", got, want)
	}
}

// A conflict that the user resolved is examined again when the session is resumed.
func TestBaseAnew(t *testing.T) {
	t.Parallel()
	conflicts := true // written before the session is resumed
	m := &merging{fakeRuns: newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil })}
	m.merge = func(context.Context) error {
		if conflicts {
			conflicts = false
			return agency.Errorf(agency.CodeMergeConflict, "conflict in x")
		}
		return nil
	}
	s := m.engineOf(t, m, t.TempDir(), 4)
	id := create(t, s, agency.Plan{MaxParallel: 8}, "a", "b", "c: a b").ID
	m.until(t, id, "the wait for a user", func(*agency.Session) bool {
		agents, err := m.SessionAgents(t.Context(), id)
		return err == nil && agents[2].Error == "waiting: the results of a and b conflict in x: fix it in the worktree of one of them, then agency session resume"
	})
	if _, err := s.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	m.until(t, id, "the end", settled)
	if got, want := m.took(), []string{"merge a b", "merge a b", "result of a", "result of a", "result of b", "result of b"}; !slices.Equal(got, want) {
		t.Errorf("it asked for %q, want %q", got, want)
	}
}

// A cancelled session does not wait for a merge.
func TestBaseCancelled(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	m := &merging{
		fakeRuns: newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil }),
		merge: func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		},
	}
	s := m.engineOf(t, m, t.TempDir(), 4)
	id := create(t, s, agency.Plan{MaxParallel: 8}, "a", "b", "c: a b").ID
	<-begun
	if _, err := s.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if end := m.until(t, id, "the end", settled); end.Status != agency.SessionCancelled || end.Counts.Cancelled != 1 {
		t.Errorf("it is %s: %+v", end.Status, end.Counts)
	}
}

var _ scheduler.Runs = (*merging)(nil)
