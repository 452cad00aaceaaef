package queuer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/lander"
	"agency/internal/queue"
	"agency/internal/verify"
)

// line is the work on one queue. Only its goroutine uses it, except for woken, ended and anew. What
// it remembers only saves work, and is found again after a crash.
type line struct {
	*Queuer
	ref     agency.QueueRef
	known   map[string]*verdict // by tree
	hash    string              // of the checks that found the verdicts in known
	running []*check
	at      string         // the target at the last look, or after a landing since then; empty before
	checked bool           // checks ran since at was set
	lost    int            // how many times in a row the target moved during checks
	runs    []agency.RunID // of the entries
	woken   chan struct{}  // a token requests a look
	ended   []*check       // those of running that have ended; guarded by Queuer.mu
	anew    bool           // known verdicts must be forgotten; guarded by Queuer.mu
}

// verdict is the result of the checks on a tree.
type verdict struct {
	queue.Verdict
	newest []agency.CheckResult
	bad    string // the check that did not pass, in words
}

func (l *line) concerns(ids []agency.RunID) bool {
	return slices.ContainsFunc(ids, func(id agency.RunID) bool { return slices.Contains(l.runs, id) })
}

// look holds what one look at the queue found.
type look struct {
	entries []agency.QueueEntry
	chain   *lander.Chain // nil when no entry can be tried
	links   map[int64]*lander.Link
	runs    map[int64]*agency.Run
	checks  *verify.Checks
	facts   queue.Facts
}

// step looks at the queue and acts. It reports whether there was something to do, and whether the
// queue is empty.
func (l *line) step(ctx context.Context) (acted, empty bool, err error) {
	ended, landed, err := l.collect(ctx)
	if err != nil || landed {
		return landed, false, err
	}
	seen, err := l.look(ctx)
	if err != nil {
		return false, false, err
	}
	if len(seen.entries) == 0 {
		l.stop(func(*check) bool { return true })
		l.note(ctx, "")
		return false, len(l.running) == 0, nil
	}
	changed := ended // the set of running checks has changed
	for _, a := range queue.Land(seen.entries, &seen.facts) {
		note := ""
		switch a.Kind {
		case queue.Settle:
			err = l.settle(ctx, seen, &a)
		case queue.Tell:
			err = l.ask(ctx, seen, &a)
		case queue.Stop:
			l.stop(func(c *check) bool { return c.Tree == a.Tree })
			continue // it counts until it has ended
		case queue.Check:
			l.note(ctx, "")
			changed = true
			var green bool
			if green, err = l.begin(ctx, seen, &a); err == nil && green {
				note, err = l.move(ctx, seen, &a)
			}
		case queue.Move:
			note, err = l.move(ctx, seen, &a)
		case queue.RedBase:
			l.note(ctx, l.ref.Target+" itself does not pass: "+l.known[seen.facts.Base].bad)
			return acted, false, nil
		}
		if note != "" {
			l.note(ctx, note)
			return false, false, err
		}
		if err != nil {
			return false, false, err
		}
		acted = true
	}
	if !acted {
		l.note(ctx, "")
	}
	if changed {
		err = l.show(ctx, seen, nil, "", "")
	}
	return acted, false, err
}

// look finds out what is known of the queue. It makes the commits of the first entries that can
// land, enough for a batch, and of those whose conflict may be resolved by now.
func (l *line) look(ctx context.Context) (*look, error) {
	killpoint.At("queue.look")
	seen := &look{links: map[int64]*lander.Link{}, runs: map[int64]*agency.Run{}}
	var err error
	if seen.entries, err = l.Store.QueueEntries(ctx, agency.QueueFilter{Repo: l.ref.Repo, Target: l.ref.Target, Open: true}); err != nil {
		return nil, err
	}
	state, err := l.Store.Queue(ctx, l.ref)
	if err != nil {
		return nil, err
	}
	settings := l.Settings()
	seen.facts = queue.Facts{Entries: map[int64]queue.Fact{}, Verdicts: map[string]queue.Verdict{}, Batch: settings.Batch, Parallel: settings.Parallel, Paused: state.Paused}
	l.runs = l.runs[:0]
	var tried []*agency.QueueEntry
	var ids []agency.RunID
	moving := 0
	for i := range seen.entries {
		e := &seen.entries[i]
		l.runs = append(l.runs, e.RunID)
		if e.Held() {
			l.lookAtHeld(ctx, seen, e)
			continue
		}
		r, err := l.Runs.Resolve(ctx, string(e.RunID))
		if err != nil {
			return nil, err
		}
		seen.runs[e.Seq] = r
		switch {
		case r.Removing != nil:
			seen.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Working, Why: "it is being removed, which saves its work first", Source: e.Source}
			continue
		case l.working(r):
			seen.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Working, Why: "its agent is at work", Source: e.Source}
			continue
		case e.State.Moving() && moving >= max(2, settings.Parallel)*settings.Batch:
			continue
		case e.State.Moving():
			moving++
		}
		landed, err := l.Lander.Landed(ctx, e.RunID, l.ref.Target, e.Source, e.AddedAt)
		if err != nil {
			return nil, err
		}
		if landed != nil { // by a daemon that was killed after the landing, or by the user
			seen.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Present, Source: e.Source, Landing: landed.ID}
			continue
		}
		tried, ids = append(tried, e), append(ids, e.RunID)
	}
	if len(ids) == 0 {
		return seen, nil
	}
	if err := l.assess(ctx, seen, tried, ids, settings.Approve); err != nil {
		return nil, err
	}
	return seen, nil
}

// lookAtHeld finds out whether the user has landed a held entry. Nothing waits for that, so after an
// error the next look asks again.
func (l *line) lookAtHeld(ctx context.Context, seen *look, e *agency.QueueEntry) {
	landed, err := l.Lander.Landed(ctx, e.RunID, l.ref.Target, e.Source, e.AddedAt)
	if err == nil && landed != nil {
		seen.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Present, Source: e.Source, Landing: landed.ID}
	}
}

// assess finds out what would land of the entries that are tried, and what is known of their
// checks.
func (l *line) assess(ctx context.Context, seen *look, tried []*agency.QueueEntry, ids []agency.RunID, agentsApprove bool) error {
	err := l.chain(ctx, seen, tried, ids, agentsApprove)
	if agency.IsCode(err, agency.CodeBadRef) && seen.chain == nil {
		l.gone(seen, err)
		return nil
	}
	if err != nil {
		return err
	}
	l.addChecks(seen)
	return nil
}

// addChecks adds to a look what is known of the target and of the checks of its trees.
func (l *line) addChecks(seen *look) {
	if l.checked && l.at != "" && l.at != seen.chain.TargetOld {
		l.lost++
	}
	l.at, l.checked, seen.facts.Lost, seen.facts.Base = seen.chain.TargetOld, len(l.running) > 0, l.lost, seen.chain.Tree
	if seen.checks != nil && seen.checks.Hash() != l.hash {
		l.distrust()
		l.hash = seen.checks.Hash()
	}
	for _, c := range l.running {
		seen.facts.Running = append(seen.facts.Running, c.Tree)
	}
	for tree, v := range l.known {
		if tree != seen.chain.Tree && !slices.ContainsFunc(seen.chain.Links, func(link lander.Link) bool { return link.Tree == tree }) {
			delete(l.known, tree) // the record of checks keeps it
			continue
		}
		seen.facts.Verdicts[tree] = v.Verdict
	}
}

// gone marks all entries as ones whose branch is gone, and ends the checks.
func (l *line) gone(seen *look, err error) {
	for i := range seen.entries {
		if e := &seen.entries[i]; !e.Held() && seen.facts.Entries[e.Seq].Obstacle != queue.Present {
			seen.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Gone, Why: words(err), Source: e.Source}
		}
	}
	l.at = ""
	l.stop(func(*check) bool { return true })
}

// chain makes the commits of some entries, and finds the facts of each.
func (l *line) chain(ctx context.Context, seen *look, tried []*agency.QueueEntry, ids []agency.RunID, agentsApprove bool) error {
	var failed error // an error of reading the checks, which no run caused
	author, err := l.author(l.ref.Repo)
	if err != nil {
		return err
	}
	seen.chain, err = l.Lander.Chain(ctx, l.ref.Target, ids, author, func(ctx context.Context, link *lander.Link, from string) error {
		e := tried[slices.Index(ids, link.Run.ID)]
		if e.State == agency.EntryFixing && e.Source == link.Source {
			return errBlamed
		}
		if e.Approved != link.Source && e.By != agency.User && !agentsApprove {
			return agency.Errorf(agency.CodeApprovalRequired, "an agent added it, and the user must approve it").WithHint("agency queue add %s --approve", link.Run.Ref())
		}
		if seen.checks == nil && failed == nil {
			repo, err := l.Repos.Of(ctx, link.Run)
			if err == nil {
				// The first link is on the target itself, and so are the next ones as long as none
				// can land.
				seen.checks, err = l.Verifier.ChecksAt(ctx, repo, l.ref.Target, from)
			}
			failed = err
		}
		if failed != nil {
			return failed
		}
		if e.Approved == link.Source {
			return nil
		}
		err := seen.checks.Guard(ctx, from, link.Landing.Candidate)
		if err != nil && !agency.IsCode(err, agency.CodeApprovalRequired) {
			failed = err
		}
		return err
	})
	if failed != nil {
		err = failed
	}
	if err != nil {
		return err
	}
	for i := range seen.chain.Links {
		link, e := &seen.chain.Links[i], tried[i]
		fact, err := l.fact(link)
		if err != nil {
			return err
		}
		if fact.Source == "" {
			fact.Source = e.Source
		}
		seen.links[e.Seq], seen.facts.Entries[e.Seq] = link, fact
	}
	return nil
}

// errBlamed means that a check does not pass because of this work.
var errBlamed = errors.New("a check does not pass because of it")

// words returns the message of an error, with its hint.
func words(err error) string {
	e := agency.AsError(err)
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// fact returns what a link means for the queue. An error means a failure of the machine, not of the
// work.
func (l *line) fact(link *lander.Link) (queue.Fact, error) {
	fact := queue.Fact{Tree: link.Tree, Source: link.Source}
	if link.Err == nil {
		return fact, nil
	}
	if errors.Is(link.Err, errBlamed) {
		return queue.Fact{Obstacle: queue.Blamed, Source: link.Source}, nil
	}
	e := agency.AsError(link.Err)
	fact.Tree, fact.Why = "", words(e)
	switch {
	case e.Code == agency.CodeNothingToLand:
		fact.Obstacle = queue.Present
		fact.Landing, _ = e.Details["landing"].(agency.LandingID)
		fact.Why = e.Message
		if fact.Landing != "" {
			fact.Why = ""
		}
	case e.Code == agency.CodeApprovalRequired:
		fact.Obstacle = queue.Unapproved
	case e.Code == agency.CodeMergeConflict && link.Alone:
		fact.Obstacle, fact.Why = queue.Conflict, e.Message
	case e.Code == agency.CodeMergeConflict, e.Code == agency.CodeTargetMoved && !link.Alone:
		fact.Obstacle, fact.Why = queue.Behind, "it waits for those before it: "+e.Message
	case slices.Contains(refusals, e.Code):
		fact.Obstacle = queue.Refused
	default:
		return fact, link.Err
	}
	return fact, nil
}

// refusals are the errors of a landing about the work itself.
var refusals = []agency.Code{
	agency.CodeInvalidState, agency.CodeUncommitted, agency.CodeSourceMoved, agency.CodeTargetMoved, agency.CodeIntegrity, agency.CodeUsage,
	agency.CodeRunNotFound,
}

// settle carries out a change of one entry.
func (l *line) settle(ctx context.Context, seen *look, a *queue.Action) error {
	reason := a.Reason
	if a.State == agency.EntryFailed || a.State == agency.EntryFixing {
		link := seen.links[a.Entry]
		v := l.known[link.Tree]
		reason = v.bad
		if err := seen.checks.Blame(ctx, link.Run.ID, link.Source, v.newest, a.State == agency.EntryFailed); err != nil {
			return err
		}
	}
	if a.State == agency.EntryHeld && a.HeldFor == agency.HeldForConflict {
		if err := l.FlagConflict(ctx, seen.links[a.Entry].Run.ID, reason); err != nil {
			return err
		}
	}
	_, err := l.Store.ChangeQueueEntries(ctx, []int64{a.Entry}, func(e *agency.QueueEntry) bool {
		if e.State.Final() || e.Held() && a.State != agency.EntryLanded {
			return false // the user has changed it meanwhile
		}
		e.State, e.Reason, e.HeldFor = a.State, reason, a.HeldFor
		if a.Source != "" {
			e.Source = a.Source
		}
		if a.Landing != "" {
			e.Landing = a.Landing
		}
		switch {
		case a.State.WithAgent():
			e.Rounds, e.Asked = e.Rounds+1, agency.AskedNot
		case a.State == agency.EntryFailed && e.Rounds > 0:
			e.Reason += fmt.Sprintf(", after its agent was asked %s", times(e.Rounds))
		}
		return true
	})
	if a.State.WithAgent() {
		killpoint.At("queue.conflict")
	}
	return err
}

// show gives some entries a state, and all others that the queue works on the state that fits the
// running checks.
func (l *line) show(ctx context.Context, seen *look, entries []int64, state agency.QueueState, reason string) error {
	var seqs []int64
	for i := range seen.entries {
		seqs = append(seqs, seen.entries[i].Seq)
	}
	_, err := l.Store.ChangeQueueEntries(ctx, seqs, func(e *agency.QueueEntry) bool {
		checks, ahead := l.checking(e.Seq)
		switch {
		case !e.State.Moving():
			return false
		case slices.Contains(entries, e.Seq):
			e.State, e.Reason = state, reason
		case checks:
			e.State, e.Reason = agency.EntryChecking, ahead
		case e.State != agency.EntryQueued:
			e.State, e.Reason = agency.EntryQueued, ""
		}
		return true
	})
	return err
}

// move lands entries, unless the user has paused the queue, or held or removed one of them, since the
// look. It returns why the target cannot be moved now.
func (l *line) move(ctx context.Context, seen *look, a *queue.Action) (note string, err error) {
	unlock, err := l.moves.Lock(ctx, moveKey(l.ref))
	if err != nil {
		return "", err
	}
	defer unlock()
	state, err := l.Store.Queue(ctx, l.ref)
	if err != nil || state.Paused {
		return "", err
	}
	now, err := l.Store.QueueEntries(ctx, agency.QueueFilter{Repo: l.ref.Repo, Target: l.ref.Target, Open: true})
	if err != nil {
		return "", err
	}
	now = slices.DeleteFunc(now, func(e agency.QueueEntry) bool { return !e.State.Moving() || !slices.Contains(a.Entries, e.Seq) })
	if len(now) < len(a.Entries) {
		return "", nil
	}
	// Ready entries stay ready: each attempt would change them twice.
	if slices.ContainsFunc(now, func(e agency.QueueEntry) bool { return e.State != agency.EntryReady }) {
		if err := l.show(ctx, seen, a.Entries, agency.EntryLanding, ""); err != nil {
			return "", err
		}
	}
	killpoint.At("queue.landing")
	links := make([]*lander.Link, 0, len(a.Entries))
	for _, seq := range a.Entries {
		links = append(links, seen.links[seq])
	}
	author, err := l.author(l.ref.Repo)
	if err != nil {
		return "", err
	}
	results, err := l.Lander.LandChain(ctx, l.ref.Target, links, author, seen.chain.TargetOld, a.Tree)
	switch {
	case agency.IsCode(err, agency.CodeTargetMoved):
		l.lost, l.at = l.lost+1, ""
		return "", l.show(ctx, seen, nil, "", "") // nothing has moved
	case agency.IsCode(err, agency.CodeTargetDirty):
		note = words(err)
		return note, l.show(ctx, seen, a.Entries, agency.EntryReady, note)
	case err != nil:
		return "", err
	}
	killpoint.At("queue.landed")
	l.lost, l.at = 0, results[len(results)-1].Landing.Candidate
	l.stop(func(c *check) bool { // landed entries need no other check
		return !slices.ContainsFunc(c.Entries, func(seq int64) bool { return !slices.Contains(a.Entries, seq) })
	})
	flaky := ""
	if v := l.known[a.Tree]; v.Reds > 0 {
		flaky = "flaky: " + v.bad + ", and passed on the same files"
	}
	_, err = l.Store.ChangeQueueEntries(ctx, a.Entries, func(e *agency.QueueEntry) bool {
		result := &results[slices.Index(a.Entries, e.Seq)]
		e.State, e.Reason, e.Landing, e.Source = agency.EntryLanded, flaky, result.Landing.ID, result.Landing.Source
		return true
	})
	for i := range results {
		for _, warning := range results[i].Warnings {
			l.Log.Warn("after a landing", "run", results[i].Landing.RunID, "warning", warning)
		}
	}
	return "", err
}

// note records why nothing lands now; empty when nothing is in the way.
func (l *line) note(ctx context.Context, text string) {
	if err := l.Store.ChangeQueue(ctx, l.ref, func(q *agency.Queue) { q.Note = text }); err != nil && ctx.Err() == nil {
		l.Log.Warn("record the state of a queue", "err", err)
	}
}
