// Package queue decides what a landing queue does next: which entries are checked together, what
// lands, and which entry is to blame for a failed check. It is pure: it knows only the entries and
// the facts, so each decision starts from nothing, and a crash loses none.
package queue

import (
	"slices"

	"agency"
)

// Rounds is how often the agent of an entry is asked to solve a conflict or to fix what a check
// found, before the entry waits for the user.
const Rounds = 2

// Races is how often in a row the target may move while a batch is checked; after that, entries are
// checked and landed one by one.
const Races = 3

// Obstacle is why an entry cannot land on top of those before it.
type Obstacle string

// The obstacles.
const (
	None       Obstacle = ""
	Working    Obstacle = "working"    // its agent may still write, or its work is being saved
	Behind     Obstacle = "behind"     // it conflicts with an entry before it, but not with the target
	Conflict   Obstacle = "conflict"   // it conflicts with the target
	Blamed     Obstacle = "blamed"     // a check does not pass because of it, and its work has not changed since
	Unapproved Obstacle = "unapproved" // the user must approve it
	Refused    Obstacle = "refused"    // it cannot land as it is, for example because its work is not committed
	Present    Obstacle = "present"    // the target already has it
	Gone       Obstacle = "gone"       // the target is deleted or renamed
)

// Fact is what is known about one entry.
type Fact struct {
	Obstacle Obstacle
	Why      string           // of the obstacle, in words
	Tree     string           // the files of the target with this entry and those before it; empty with an obstacle
	Source   string           // the commit of its work now
	Landing  agency.LandingID // that brought it in, when the target has it
}

// Facts are what is known of the target and of the checks.
type Facts struct {
	Base     string         // the files of the target
	Entries  map[int64]Fact // by Seq; the queue leaves an entry without one alone
	Verdicts map[string]Verdict
	Running  []string // the trees whose checks run
	Batch    int      // how many entries are checked together at most
	Parallel int      // how many trees are checked at the same time at most
	Lost     int      // how many times in a row the target moved while entries were checked
	Paused   bool
}

// Verdict is the result of the checks on some files.
type Verdict struct {
	Green bool // they have passed
	Reds  int  // how often they did not
	Alone bool // they were checked with no other check of the queue beside them
}

// red reports whether the files failed often enough to blame an entry or the target: twice, since a
// check can fail by chance, and once without another check of the queue beside it.
func (v Verdict) red() bool { return !v.Green && v.Reds > 1 && v.Alone }

// Kind is what an action does.
type Kind string

// The kinds.
const (
	Settle  Kind = "settle"   // give Entry the State with the Reason; each conflict begins another round
	Tell    Kind = "tell"     // ask the agent of Entry, whose state is conflict or fixing, to fix its work
	Check   Kind = "check"    // begin to check Tree, which is the target with Entries
	Stop    Kind = "stop"     // end the checks of Tree: it begins with files that did not pass
	Move    Kind = "land"     // move the target to Tree: Entries land
	RedBase Kind = "red base" // do nothing: the target itself does not pass
)

// Action is one thing to do.
type Action struct {
	Kind    Kind
	Entry   int64 // of Settle and Tell
	State   agency.QueueState
	Reason  string
	HeldFor agency.HeldFor
	Source  string
	Landing agency.LandingID
	Entries []int64 // of Check and Move, in order; none for a check of the target itself
	Tree    string  // of Check, Stop and Move
}

// Land returns what to do now. The entries are those of one queue, in order. Changes of single
// entries come first; after them come a move of the target, or checks to begin and to stop. Without
// actions, the queue waits until a fact changes.
//
// Entries are checked as a chain, the last of a batch first. Further batches are checked at the
// same time, in order, as if those before them passed. When one fails, nothing else is checked
// beside it. Its prefixes are halved, one by one; a green prefix lands, and the shortest red one
// ends with the culprit. One failure alone blames no entry: the same files must fail twice, the
// second time with no other check of the queue beside them, and the target alone must pass. The
// target is checked when a second check in a row is red, so that a red target costs three checks,
// and a culprit no additional one.
func Land(entries []agency.QueueEntry, facts *Facts) []Action {
	actions := []Action{}
	var chain []int64
	var trees []string
	for i := range entries {
		e := &entries[i]
		fact, known := facts.Entries[e.Seq]
		if !known || e.State.Final() {
			continue
		}
		state := e.State
		if a := settle(e, &fact); a != nil {
			actions = append(actions, *a)
			if a.Kind == Settle {
				state = a.State
			}
		}
		if state.Moving() && fact.Obstacle == None {
			chain, trees = append(chain, e.Seq), append(trees, fact.Tree)
		}
	}
	if facts.Paused || len(chain) == 0 {
		return actions
	}
	for _, a := range next(chain, trees, facts) {
		if a.Kind == Settle {
			a = blame(entries, a)
		}
		actions = append(actions, a)
	}
	return actions
}

// blame returns what happens to the entry because of which a check does not pass: its agent is
// asked to fix it, up to Rounds times.
func blame(entries []agency.QueueEntry, a Action) Action {
	i := slices.IndexFunc(entries, func(e agency.QueueEntry) bool { return e.Seq == a.Entry })
	if entries[i].Rounds < Rounds {
		a.State = agency.EntryFixing
	}
	return a
}

// settle returns the change of one entry that needs no check; nil when there is none.
func settle(e *agency.QueueEntry, f *Fact) *Action {
	to := func(state agency.QueueState, reason string) *Action {
		if e.State == state && e.Reason == reason && e.Source == f.Source {
			return nil
		}
		return &Action{Kind: Settle, Entry: e.Seq, State: state, Reason: reason, Source: f.Source, Landing: f.Landing}
	}
	held := func(why agency.HeldFor) *Action {
		return &Action{Kind: Settle, Entry: e.Seq, State: agency.EntryHeld, Reason: f.Why, HeldFor: why, Source: f.Source}
	}
	switch {
	case f.Obstacle == Present && f.Landing != "":
		return to(agency.EntryLanded, f.Why)
	case f.Obstacle == Present:
		return to(agency.EntryDropped, f.Why)
	case e.State.WithAgent() && e.Asked == agency.AskedNot && (f.Obstacle == Conflict || f.Obstacle == Blamed) && e.Source == f.Source:
		return &Action{Kind: Tell, Entry: e.Seq, Source: f.Source}
	case e.State.WithAgent() && (f.Obstacle == Working || f.Obstacle == Refused || f.Obstacle == Blamed || f.Obstacle == Conflict && e.Source == f.Source):
		return nil // it is not fixed yet
	case e.Held():
		return nil // the user decides
	case f.Obstacle == Gone && e.State.Moving():
		return held(agency.HeldForTarget)
	case f.Obstacle == Gone || f.Obstacle == Working && e.State == agency.EntryHeld:
		return nil
	}
	switch f.Obstacle {
	case Conflict:
		if e.Rounds >= Rounds {
			return held(agency.HeldForConflict)
		}
		return &Action{Kind: Settle, Entry: e.Seq, State: agency.EntryConflict, Reason: f.Why, Source: f.Source}
	case Unapproved:
		return held(agency.HeldForApproval)
	case Refused:
		return held(agency.HeldForWork)
	case Working, Behind:
		return to(agency.EntryQueued, f.Why)
	default:
	}
	if !e.State.Moving() || e.Source != f.Source {
		return to(agency.EntryQueued, "")
	}
	return nil
}

// next returns what to do with a chain of entries.
func next(chain []int64, trees []string, f *Facts) []Action {
	// Green files land, with everything before them.
	for i := range slices.Backward(trees) {
		if f.Verdicts[trees[i]].Green {
			return []Action{{Kind: Move, Entries: slices.Clone(chain[:i+1]), Tree: trees[i]}}
		}
	}
	size, parallel := max(f.Batch, 1), max(f.Parallel, 1)
	if f.Lost >= Races {
		size, parallel = 1, 1
	}
	red := slices.IndexFunc(trees, func(tree string) bool { return f.Verdicts[tree].Reds > 0 })
	if red < 0 || red >= size {
		return ahead(chain, trees, f, size, parallel, red)
	}
	var actions []Action
	for _, tree := range trees[red+1:] {
		if slices.Contains(f.Running, tree) {
			actions = append(actions, Action{Kind: Stop, Tree: tree})
		}
	}
	if len(f.Running) == 0 {
		actions = append(actions, bisect(chain, trees, f, red+1))
	}
	return actions
}

// ahead returns the checks of batches to begin, the first batches first, up to the first entry that
// failed. red is its index, negative for none.
func ahead(chain []int64, trees []string, f *Facts, size, parallel, red int) []Action {
	var actions []Action
	for start := 0; start < len(chain) && len(f.Running)+len(actions) < parallel; {
		end := min(start+size, len(chain))
		// A running check is awaited, instead of begun again with more entries.
		for i := end; i > start; i-- {
			if slices.Contains(f.Running, trees[i-1]) {
				end = i
				break
			}
		}
		if red >= 0 && end > red {
			break
		}
		begun := func(a Action) bool { return a.Tree == trees[end-1] } // an entry may change no file
		if !slices.Contains(f.Running, trees[end-1]) && !slices.ContainsFunc(actions, begun) {
			actions = append(actions, Action{Kind: Check, Entries: slices.Clone(chain[:end]), Tree: trees[end-1]})
		}
		start = end
	}
	return actions
}

// bisect returns the next step to find the culprit, after the first n entries of a chain did not
// pass.
func bisect(chain []int64, trees []string, f *Facts, n int) Action {
	reds := 0
	for _, tree := range trees {
		reds += f.Verdicts[tree].Reds
	}
	base := f.Verdicts[f.Base]
	switch {
	case base.red():
		return Action{Kind: RedBase}
	case !base.Green && (reds > 1 || base.Reds > 0):
		return Action{Kind: Check, Tree: f.Base}
	case n > 1:
		return Action{Kind: Check, Entries: slices.Clone(chain[:n/2]), Tree: trees[n/2-1]}
	case !f.Verdicts[trees[0]].red():
		return Action{Kind: Check, Entries: slices.Clone(chain[:1]), Tree: trees[0]}
	default:
		return Action{Kind: Settle, Entry: chain[0], State: agency.EntryFailed}
	}
}
