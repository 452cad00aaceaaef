package queuer

import (
	"context"
	"slices"

	"agency"
)

// AddRequest asks for runs to land when their turn comes.
type AddRequest struct {
	Runs    []string // references, in the order of landing
	Into    string   // the branch; empty is the one in which a run would land
	By      string   // a run's id, or agency.User
	Approve bool     // the user approves the work as it is now
	Env     []string // for the checks
}

// Item is an entry and its run.
type Item struct {
	Entry agency.QueueEntry
	Run   *agency.Run
}

// Add adds runs to the ends of queues; none when one of them cannot land. A run that is in the
// queue already stays where it is, and is approved if the request approves it. The queue waits for
// an agent that still works. The errors are those of a landing.
func (q *Queuer) Add(ctx context.Context, req *AddRequest) ([]Item, error) {
	items := make([]Item, 0, len(req.Runs))
	for _, ref := range req.Runs {
		item, err := q.prepare(ctx, ref, req)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(items, func(other Item) bool { return other.Run.ID == item.Run.ID }) {
			items = append(items, *item)
		}
	}
	if err := q.addAll(ctx, items, req); err != nil {
		for i := range items {
			q.dropEnv(ctx, items[i].Entry.Repo)
		}
		return nil, err
	}
	for i := range items { // together, so that they are checked together
		q.wake(agency.QueueRef{Repo: items[i].Entry.Repo, Target: items[i].Entry.Target}, req.Approve)
	}
	return items, nil
}

// addAll writes entries, and the environment for their checks.
func (q *Queuer) addAll(ctx context.Context, items []Item, req *AddRequest) error {
	q.environs.Lock()
	defer q.environs.Unlock()
	for i := range items {
		e := &items[i].Entry
		if err := q.writeEnv(e.Repo, req.By, req.Env); err != nil {
			return err
		}
		if err := q.add(ctx, e, req.Approve); err != nil {
			return err
		}
	}
	return nil
}

// prepare returns the entry for a run: a new one, or the existing one.
func (q *Queuer) prepare(ctx context.Context, ref string, req *AddRequest) (*Item, error) {
	r, err := q.Runs.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	repo, err := q.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	target, err := q.Lander.Target(ctx, r, repo, req.Into)
	if err != nil {
		return nil, err
	}
	e := agency.QueueEntry{RunID: r.ID, Run: r.Ref(), Repo: r.Repo.Fingerprint, Target: target, State: agency.EntryQueued, By: req.By}
	there, err := q.Store.QueueEntries(ctx, agency.QueueFilter{Repo: e.Repo, Target: target, Run: r.ID, Open: true})
	if err != nil {
		return nil, err
	}
	if len(there) > 0 {
		e = there[0]
	}
	if q.working(r) {
		if req.Approve {
			return nil, agency.Errorf(agency.CodeInvalidState, "%s is at work, so there is nothing to approve yet", r.Ref()).WithHint("wait for it: agency wait %s", r.Ref())
		}
		return &Item{e, r}, nil
	}
	// The agent resolves conflicts when the turn of its entry comes. Other obstacles are errors
	// now.
	author := agency.Environ(req.Env)
	if req.By != agency.User {
		if author, err = q.author(e.Repo); err != nil {
			return nil, err
		}
	}
	chain, err := q.Lander.Chain(ctx, target, []agency.RunID{r.ID}, author, nil)
	if err != nil {
		return nil, err
	}
	link := &chain.Links[0]
	if agency.IsCode(link.Err, agency.CodeInvalidState) && !req.Approve {
		now, err := q.Runs.Resolve(ctx, string(r.ID))
		if err == nil && q.working(now) { // the queue resumed it meanwhile
			return &Item{e, now}, nil
		}
	}
	if link.Err != nil && !agency.IsCode(link.Err, agency.CodeMergeConflict) {
		return nil, link.Err
	}
	e.Source = link.Source
	return &Item{e, r}, nil
}

func (q *Queuer) working(r *agency.Run) bool {
	label := q.Status(r).Label
	return label == agency.Working || label == agency.Active || label == agency.LabelQueued
}

// add writes an entry, or approves the existing one.
func (q *Queuer) add(ctx context.Context, e *agency.QueueEntry, approve bool) error {
	if e.Seq == 0 {
		if approve {
			e.Approved = e.Source
		}
		return q.Store.AddQueueEntry(ctx, e)
	}
	if !approve {
		return nil
	}
	source := e.Source
	changed, err := q.Store.ChangeQueueEntries(ctx, []int64{e.Seq}, func(now *agency.QueueEntry) bool {
		if now.State.Final() {
			return false
		}
		now.Approved, now.Source = source, source
		if now.State == agency.EntryHeld {
			now.State, now.Reason = agency.EntryQueued, ""
		}
		return true
	})
	if err == nil {
		*e = changed[0]
	}
	return err
}

// Change is what the user does to an entry.
type Change string

// The changes.
const (
	Hold   Change = "hold"   // the queue leaves it alone until Resume
	Resume Change = "resume" // the queue continues with it
	Retry  Change = "retry"  // try a failed, conflicting or held one again, with the present work
	Remove Change = "remove"
)

// ChangeRequest asks for a change of the newest entry of each of some runs.
type ChangeRequest struct {
	Change Change
	Runs   []string // references
	Into   string   // the branch of the queue; empty is any
	Env    []string // for the checks
}

// Change changes entries. An entry whose state does not allow it is E_INVALID_STATE; the entries
// before it in the request are changed then. A change waits for the end of a landing that has begun.
func (q *Queuer) Change(ctx context.Context, req *ChangeRequest) ([]Item, error) {
	items := make([]Item, 0, len(req.Runs))
	for _, ref := range req.Runs {
		r, err := q.Runs.Resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		e, err := q.newest(ctx, r, req.Into)
		if err != nil {
			return nil, err
		}
		if req.Change != Hold && req.Change != Remove {
			if err := q.writeEnv(e.Repo, agency.User, req.Env); err != nil {
				return nil, err
			}
			defer q.dropEnv(ctx, e.Repo) // unless an entry still needs it
		}
		if e.State == agency.EntryFailed && req.Change == Retry {
			added, err := q.Add(ctx, &AddRequest{Runs: []string{string(r.ID)}, Into: e.Target, By: e.By, Env: req.Env})
			if err != nil {
				return nil, err
			}
			q.wake(agency.QueueRef{Repo: e.Repo, Target: e.Target}, true)
			items = append(items, added...)
			continue
		}
		if e, err = q.change(ctx, r, e.Target, req.Change); err != nil {
			return nil, err
		}
		items = append(items, Item{*e, r})
		q.wake(agency.QueueRef{Repo: e.Repo, Target: e.Target}, req.Change == Resume || req.Change == Retry)
	}
	return items, nil
}

// change changes the newest entry of a run in a queue when nothing of that queue lands, and returns it.
// The landing of an entry on which the queue works may have been cut off, or have failed. The record of
// landings tells whether it moved the target; if not, the entry may be changed.
func (q *Queuer) change(ctx context.Context, r *agency.Run, target string, kind Change) (*agency.QueueEntry, error) {
	unlock, err := q.moves.Lock(ctx, moveKey(agency.QueueRef{Repo: r.Repo.Fingerprint, Target: target}))
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, err := q.newest(ctx, r, target)
	if err != nil {
		return nil, err
	}
	if e.State.Moving() {
		landed, err := q.Lander.Landed(ctx, e.RunID, target, e.Source, e.AddedAt)
		if err != nil {
			return nil, err
		}
		if landed != nil {
			return nil, agency.Errorf(agency.CodeInvalidState, "the work of %s is in %q already", r.Ref(), target).WithHint("take it back: agency merge --undo %s", landed.ID)
		}
	}
	changed, err := q.Store.ChangeQueueEntries(ctx, []int64{e.Seq}, func(now *agency.QueueEntry) bool { return change(now, kind) })
	if err != nil {
		return nil, err
	}
	if !done(&changed[0], kind) {
		return nil, agency.Errorf(agency.CodeInvalidState, "the entry of %s in the queue of %q is %s", r.Ref(), target, changed[0].State).WithHint("agency queue explain %s", r.Ref())
	}
	return &changed[0], nil
}

// newest returns the entry of a run that has not left its queue, or else its last one.
func (q *Queuer) newest(ctx context.Context, r *agency.Run, into string) (*agency.QueueEntry, error) {
	all, err := q.Store.QueueEntries(ctx, agency.QueueFilter{Run: r.ID, Target: into})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is in no queue", r.Ref()).WithHint("agency queue add %s", r.Ref())
	}
	for i := range slices.Backward(all) {
		if !all[i].State.Final() {
			return &all[i], nil
		}
	}
	return &all[len(all)-1], nil
}

// change changes an entry, and reports whether it did.
func change(e *agency.QueueEntry, change Change) bool {
	switch {
	case e.State.Final():
		return false
	case change == Hold:
		e.State, e.Reason, e.HeldFor = agency.EntryHeld, "held: agency queue hold", agency.HeldByHand
	case change == Remove:
		e.State, e.Reason = agency.EntryDropped, "removed: agency queue rm"
	case change == Resume && e.State == agency.EntryHeld, change == Retry && !e.State.Moving():
		e.State, e.Reason, e.Rounds = agency.EntryQueued, "", 0
	default:
		return false
	}
	return true
}

// done reports whether an entry already is as a change would leave it.
func done(e *agency.QueueEntry, change Change) bool {
	switch change {
	case Hold:
		return e.State == agency.EntryHeld
	case Remove:
		return e.State == agency.EntryDropped
	default:
		return e.State.Moving()
	}
}

// Pause makes a queue land nothing until it is resumed. It waits for the end of a landing that has
// begun. Running checks continue to their end.
func (q *Queuer) Pause(ctx context.Context, ref agency.QueueRef, pause bool, env []string) error {
	if !pause {
		if err := q.writeEnv(ref.Repo, agency.User, env); err != nil {
			return err
		}
	}
	unlock, err := q.moves.Lock(ctx, moveKey(ref))
	if err != nil {
		return err
	}
	defer unlock()
	if err := q.Store.ChangeQueue(ctx, ref, func(q *agency.Queue) { q.Paused = pause }); err != nil {
		return err
	}
	q.wake(ref, !pause)
	return nil
}
