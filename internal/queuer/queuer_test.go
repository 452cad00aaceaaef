package queuer_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/lander"
	"agency/internal/queuer"
)

// record holds runs and the entries of queues in memory, for a queuer that is not started.
type record struct {
	queuer.Store  // the methods that only a started queuer needs
	queuer.Lander // likewise

	entries []agency.QueueEntry
	working map[string]bool        // runs whose agents work, by name
	refused map[agency.RunID]error // why runs cannot land
	resumed string                 // the run whose agent begins to work before it is tried
	full    bool                   // no entry can be added

	landed    *agency.Landing // of each run; nil for none
	unsettled error           // why that is unknown
}

func (r *record) Landed(context.Context, agency.RunID, string, string, time.Time) (*agency.Landing, error) {
	return r.landed, r.unsettled
}

func (r *record) AddQueueEntry(_ context.Context, e *agency.QueueEntry) error {
	if r.full {
		return agency.Errorf(agency.CodeDBError, "full")
	}
	e.Seq = int64(len(r.entries) + 1)
	r.entries = append(r.entries, *e)
	return nil
}

func (r *record) ChangeQueueEntries(_ context.Context, seqs []int64, change func(e *agency.QueueEntry) bool) ([]agency.QueueEntry, error) {
	changed := []agency.QueueEntry{}
	for _, seq := range seqs {
		e := r.entries[seq-1]
		if change(&e) {
			r.entries[seq-1] = e
		}
		changed = append(changed, r.entries[seq-1])
	}
	return changed, nil
}

func (r *record) QueueEntries(_ context.Context, f agency.QueueFilter) ([]agency.QueueEntry, error) {
	found := []agency.QueueEntry{}
	for _, e := range r.entries {
		if (f.Run == "" || e.RunID == f.Run) && (f.Target == "" || e.Target == f.Target) && (!f.Open || !e.State.Final()) {
			found = append(found, e)
		}
	}
	return found, nil
}

func (r *record) OpenQueues(ctx context.Context) ([]agency.QueueRef, error) {
	open, err := r.QueueEntries(ctx, agency.QueueFilter{Open: true})
	refs := []agency.QueueRef{}
	for _, e := range open {
		refs = append(refs, agency.QueueRef{Repo: e.Repo, Target: e.Target})
	}
	return refs, err
}

func (r *record) Resolve(_ context.Context, ref string) (*agency.Run, error) {
	name := strings.TrimPrefix(ref, "r_")
	run := &agency.Run{ID: agency.RunID("r_" + name), Name: name}
	run.Repo.Fingerprint = "repo"
	return run, nil
}
func (r *record) Of(context.Context, *agency.Run) (agency.Repo, error) { return agency.Repo{}, nil }

func (r *record) Target(_ context.Context, _ *agency.Run, _ agency.Repo, asked string) (string, error) {
	if asked == "" {
		asked = "main"
	}
	return asked, nil
}

func (r *record) Chain(_ context.Context, _ string, runs []agency.RunID, _ agency.Environ, _ lander.Accept) (*lander.Chain, error) {
	if name := strings.TrimPrefix(string(runs[0]), "r_"); name == r.resumed {
		r.working[name] = true
		return &lander.Chain{Links: []lander.Link{{Err: agency.Errorf(agency.CodeInvalidState, "it is working")}}}, nil
	}
	return &lander.Chain{Links: []lander.Link{{Source: "work of " + string(runs[0]), Err: r.refused[runs[0]]}}}, nil
}

func newBench(t *testing.T) (*record, *queuer.Queuer) {
	t.Helper()
	r := &record{working: map[string]bool{}, refused: map[agency.RunID]error{}}
	return r, queuer.New(queuer.Deps{
		Store: r, Lander: r, Runs: r, Repos: r, Home: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Status: func(run *agency.Run) agency.Status {
			if r.working[run.Name] {
				return agency.Status{Label: agency.Working}
			}
			return agency.Status{Label: agency.LabelCompleted}
		},
	})
}

// add adds runs for the user, and returns the code of the error.
func add(t *testing.T, q *queuer.Queuer, approve bool, runs ...string) agency.Code {
	t.Helper()
	_, err := q.Add(t.Context(), &queuer.AddRequest{Runs: runs, By: agency.User, Approve: approve, Env: []string{"CC=clang", "AGENCY_TOKEN=secret"}})
	if err == nil {
		return ""
	}
	return agency.AsError(err).Code
}

// Runs are added in order and once, all or none. One whose agent works is waited for, and one that
// conflicts is for its agent to mend.
func TestAdd(t *testing.T) {
	t.Parallel()
	r, q := newBench(t)
	r.working["busy"] = true
	r.refused["r_clash"] = agency.Errorf(agency.CodeMergeConflict, "conflict")
	r.refused["r_messy"] = agency.Errorf(agency.CodeUncommitted, "not committed")
	if code := add(t, q, false, "one", "messy"); code != agency.CodeUncommitted || len(r.entries) != 0 {
		t.Errorf("%q, and %d entries", code, len(r.entries))
	}
	if code := add(t, q, true, "busy"); code != agency.CodeInvalidState {
		t.Errorf("the work of an agent that still works was approved: %q", code)
	}
	if code := add(t, q, false, "one", "busy", "one", "clash"); code != "" {
		t.Error(code)
	}
	if code := add(t, q, false, "clash", "one"); code != "" {
		t.Error(code)
	}
	r.resumed = "woken"
	if code := add(t, q, false, "woken"); code != "" {
		t.Errorf("a run that the queue resumed meanwhile: %q", code)
	}
	names := ""
	for _, e := range r.entries {
		names += e.Run + " " + e.Source + "\n"
	}
	if want := "one work of r_one\nbusy \nclash work of r_clash\nwoken \n"; names != want {
		t.Errorf("the queue has\n%swant\n%s", names, want)
	}
}

// An approval holds for the work as it is, and releases an entry that was held for it.
func TestApprove(t *testing.T) {
	t.Parallel()
	r, q := newBench(t)
	add(t, q, false, "one")
	r.entries[0].State, r.entries[0].Reason = agency.EntryHeld, "an agent added it"
	add(t, q, false, "one")
	if e := r.entries[0]; e.Approved != "" || e.State != agency.EntryHeld {
		t.Errorf("approved without being asked to: %+v", e)
	}
	add(t, q, true, "one")
	if e := r.entries[0]; e.Approved != "work of r_one" || e.State != agency.EntryQueued || e.Reason != "" || len(r.entries) != 1 {
		t.Errorf("not approved: %+v", e)
	}
}

// What a user may do to an entry depends on its state. What has left the queue stays as it is; a failed
// one is added again.
func TestChange(t *testing.T) {
	t.Parallel()
	const refused = agency.QueueState("")
	for state, want := range map[agency.QueueState]map[queuer.Change]agency.QueueState{
		agency.EntryQueued:   {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped, queuer.Resume: agency.EntryQueued, queuer.Retry: agency.EntryQueued},
		agency.EntryChecking: {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped, queuer.Resume: agency.EntryChecking},
		agency.EntryReady:    {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped},
		agency.EntryLanding:  {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped},
		agency.EntryConflict: {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped, queuer.Resume: refused, queuer.Retry: agency.EntryQueued},
		agency.EntryHeld:     {queuer.Hold: agency.EntryHeld, queuer.Remove: agency.EntryDropped, queuer.Resume: agency.EntryQueued, queuer.Retry: agency.EntryQueued},
		agency.EntryLanded:   {queuer.Hold: refused, queuer.Remove: refused, queuer.Resume: refused, queuer.Retry: refused},
		agency.EntryFailed:   {queuer.Hold: refused, queuer.Remove: refused, queuer.Resume: refused, queuer.Retry: agency.EntryQueued},
	} {
		for change, want := range want {
			r, q := newBench(t)
			add(t, q, false, "one")
			r.entries[0].State, r.entries[0].Rounds = state, 1
			items, err := q.Change(t.Context(), &queuer.ChangeRequest{Change: change, Runs: []string{"one"}})
			switch {
			case want == refused:
				if !agency.IsCode(err, agency.CodeInvalidState) || r.entries[0].State != state || len(r.entries) != 1 {
					t.Errorf("%s of %s: %v, and it is %s", change, state, err, r.entries[0].State)
				}
			case err != nil:
				t.Errorf("%s of %s: %v", change, state, err)
			case items[0].Entry.State != want:
				t.Errorf("%s of %s makes it %s, want %s", change, state, items[0].Entry.State, want)
			case state == agency.EntryFailed && (len(r.entries) != 2 || r.entries[0].State != state):
				t.Errorf("%s of %s: the entries are %+v", change, state, r.entries)
			}
		}
	}
	_, q := newBench(t)
	if _, err := q.Change(t.Context(), &queuer.ChangeRequest{Change: queuer.Hold, Runs: []string{"one"}}); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("a run in no queue: %v", err)
	}
}

// An entry whose landing failed can be held and removed. One whose landing moved the target cannot, nor
// one of which that is unknown.
func TestChangeAfterAFailedLanding(t *testing.T) {
	t.Parallel()
	unknown := agency.Errorf(agency.CodeLandingOpen, "git does not answer")
	for _, change := range []queuer.Change{queuer.Hold, queuer.Remove} {
		r, q := newBench(t)
		add(t, q, false, "one")
		r.entries[0].State = agency.EntryLanding
		ask := func() error {
			_, err := q.Change(t.Context(), &queuer.ChangeRequest{Change: change, Runs: []string{"one"}})
			return err
		}
		r.unsettled = unknown
		if err := ask(); !agency.IsCode(err, agency.CodeLandingOpen) || r.entries[0].State != agency.EntryLanding {
			t.Errorf("%s while it is unknown: %v, and it is %s", change, err, r.entries[0].State)
		}
		r.unsettled, r.landed = nil, &agency.Landing{ID: "l_1"}
		if err := ask(); !agency.IsCode(err, agency.CodeInvalidState) || !strings.Contains(agency.AsError(err).Hint, "--undo l_1") {
			t.Errorf("%s of what has landed: %v", change, err)
		}
		r.landed = nil
		if err := ask(); err != nil || r.entries[0].State.Moving() {
			t.Errorf("%s: %v, and it is %s", change, err, r.entries[0].State)
		}
	}
}

// The environment of the checks is kept for its owner alone, without the token of the caller, and
// only while an entry needs it: also after a request that is refused.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r, q := newBench(t)
	path := filepath.Join(q.Home, "queues", "repo.json")
	stays := func(what string, want bool) {
		t.Helper()
		info, err := os.Stat(path)
		if (err == nil) != want {
			t.Errorf("%s: the environment is there: %v", what, err == nil)
		}
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: its mode is %o", what, info.Mode().Perm())
		}
	}
	r.full = true
	if code := add(t, q, false, "one"); code != agency.CodeDBError {
		t.Error(code)
	}
	stays("nothing could be added", false)
	r.full = false
	add(t, q, false, "one")
	stays("an entry", true)
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "CC=clang") || strings.Contains(string(data), "secret") {
		t.Errorf("it holds %s, %v", data, err)
	}
	r.entries[0].State = agency.EntryLanded
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, change := range []queuer.Change{queuer.Resume, queuer.Retry} {
		if _, err := q.Change(t.Context(), &queuer.ChangeRequest{Change: change, Runs: []string{"one"}, Env: []string{"CC=clang"}}); err == nil {
			t.Errorf("%s of what has landed", change)
		}
		stays(string(change)+" of what has landed", false)
	}
}
