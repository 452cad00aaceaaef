package queue_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agency"
	"agency/internal/queue"
)

// world is a target with its queue: what is true, and what the queue knows of it. A tree is the
// text of what it holds: "2:[1.0 5.1]" is the user's second commit with the entries 1 and 5, the
// latter after a fix.
type world struct {
	t        *testing.T
	random   *rand.Rand
	base     int            // the user's commits
	broken   map[int]bool   // commits of the user that do not pass
	landed   []int64        // in the target, in order
	culprits map[int64]bool // entries that break every tree they are in
	stubborn map[int64]bool // culprits that their agents do not fix
	version  map[int64]int  // of the work of an entry, which its agent changed
	rests    int            // an agent that was asked acts at one of so many looks; 0 is never
	against  map[int64]int  // entries that conflict with the target until it is that commit of the user
	entries  []agency.QueueEntry
	facts    queue.Facts
	flaky    float64         // how often a tree that passes fails, at most once in a row
	failed   map[string]bool // trees that failed by chance the last time
	running  []*check
	mixed    bool            // a check can end before one that began earlier
	jealous  bool            // a check fails when another one runs beside it
	alone    map[string]bool // trees that were checked with no other check beside them
	checks   int             // that were begun
	stopped  int             // of them
	asked    map[int64]int   // how often an agent was asked to solve its conflict
	tries    map[int64]int   // how often it did something that did not solve it
}

// check is a check that runs.
type check struct {
	tree   string
	green  bool // the truth about its files
	beside bool // another one ran at the same time
}

func newWorld(t *testing.T, seed uint64, entries int) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), broken: map[int]bool{}, culprits: map[int64]bool{}, against: map[int64]int{}, failed: map[string]bool{}, rests: 3, alone: map[string]bool{}, stubborn: map[int64]bool{}, version: map[int64]int{}, asked: map[int64]int{}, tries: map[int64]int{},
		facts: queue.Facts{Verdicts: map[string]queue.Verdict{}, Batch: 5, Parallel: 2},
	}
	for i := range int64(entries) {
		w.entries = append(w.entries, agency.QueueEntry{Seq: i + 1, State: agency.EntryQueued})
	}
	return w
}

func (w *world) tree(more ...int64) string {
	name := append(strconv.AppendInt(nil, int64(w.base), 10), ':', '[')
	for i, seq := range slices.Concat(w.landed, more) {
		if i > 0 {
			name = append(name, ' ')
		}
		name = strconv.AppendInt(append(strconv.AppendInt(name, seq, 10), '.'), int64(w.version[seq]), 10)
	}
	return string(append(name, ']'))
}

// green reports the truth about the target with some entries.
func (w *world) green(more []int64) bool {
	return !w.broken[w.base] && !slices.ContainsFunc(slices.Concat(w.landed, more), func(seq int64) bool { return w.culprits[seq] })
}

// look finds out what an engine would tell the queue.
func (w *world) look() {
	w.facts.Base, w.facts.Entries, w.facts.Running = w.tree(), map[int64]queue.Fact{}, nil
	for _, c := range w.running {
		w.facts.Running = append(w.facts.Running, c.tree)
	}
	var chain []int64
	for i := range w.entries {
		e := &w.entries[i]
		switch {
		case slices.Contains(w.landed, e.Seq):
			w.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Present, Landing: "l_1"}
		case w.against[e.Seq] > w.base:
			if e.Asked != agency.AskedNot && w.random.IntN(3) == 0 {
				w.tries[e.Seq]++ // its agent did something that does not solve it
			}
			w.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Conflict, Source: fmt.Sprint("try ", w.tries[e.Seq])}
		case e.State == agency.EntryFixing && (e.Asked == agency.AskedNot || w.rests == 0 || w.random.IntN(w.rests) > 0):
			w.facts.Entries[e.Seq] = queue.Fact{Obstacle: queue.Blamed, Source: e.Source}
		case e.State == agency.EntryFixing:
			w.version[e.Seq]++ // its agent fixed it, or thinks so
			w.culprits[e.Seq] = w.stubborn[e.Seq]
			chain = append(chain, e.Seq)
			w.facts.Entries[e.Seq] = queue.Fact{Source: fmt.Sprint("fix ", w.version[e.Seq]), Tree: w.tree(chain...)}
		case e.State == agency.EntryConflict:
			chain = append(chain, e.Seq) // its agent solved it
			w.facts.Entries[e.Seq] = queue.Fact{Source: "solved", Tree: w.tree(chain...)}
		case e.State.Moving():
			chain = append(chain, e.Seq)
			w.facts.Entries[e.Seq] = queue.Fact{Source: e.Source, Tree: w.tree(chain...)}
		}
	}
}

// begin begins the checks of the target with some entries.
func (w *world) begin(tree string, more []int64) {
	c := &check{tree: tree, green: w.green(more), beside: len(w.running) > 0}
	for _, other := range w.running {
		if other.beside = true; other.tree == tree {
			w.t.Fatalf("%s is checked twice at the same time", tree)
		}
	}
	w.running, w.checks = append(w.running, c), w.checks+1
	if len(w.running) > w.facts.Parallel {
		w.t.Fatalf("%d checks run", len(w.running))
	}
}

// end ends one of the checks that run: the one that began first, or any of them.
func (w *world) end() {
	i := 0
	if w.mixed {
		i = w.random.IntN(len(w.running))
	}
	c := w.running[i]
	w.running = slices.Delete(w.running, i, i+1)
	v := w.facts.Verdicts[c.tree]
	chance := c.green && (w.jealous && c.beside || !w.failed[c.tree] && w.random.Float64() < w.flaky)
	if w.failed[c.tree] = chance; c.green && !chance {
		v.Green = true
	} else {
		v.Reds++
	}
	w.alone[c.tree] = w.alone[c.tree] || !c.beside
	v.Alone = w.alone[c.tree]
	w.facts.Verdicts[c.tree] = v
}

// stop ends a check without a verdict.
func (w *world) stop(tree string) {
	red := func(other string) bool {
		return w.facts.Verdicts[other].Reds > 0 && strings.HasPrefix(tree, strings.TrimSuffix(other, "]")+" ")
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(w.facts.Verdicts)), red) {
		w.t.Fatalf("%s is no longer checked, and does not begin with files that failed", tree)
	}
	w.running = slices.DeleteFunc(w.running, func(c *check) bool { return c.tree == tree })
	w.stopped++
}

// step does what the queue says once, or else ends a check. It reports whether there was something
// to do.
func (w *world) step() bool {
	w.look()
	actions := queue.Land(w.entries, &w.facts)
	for _, a := range actions {
		switch a.Kind {
		case queue.Tell:
			e := &w.entries[a.Entry-1]
			if !e.State.WithAgent() || e.Asked != agency.AskedNot {
				w.t.Fatalf("the agent of entry %d, which is %s, is asked again", a.Entry, e.State)
			}
			e.Asked = agency.AskedMessage
			if w.asked[a.Entry]++; w.asked[a.Entry] > queue.Rounds {
				w.t.Fatalf("the agent of entry %d is asked %d times", a.Entry, w.asked[a.Entry])
			}
		case queue.Settle:
			e := &w.entries[a.Entry-1]
			if (a.State == agency.EntryFailed || a.State == agency.EntryFixing) && (!w.culprits[a.Entry] || !w.alone[w.tree(a.Entry)]) {
				w.t.Fatalf("entry %d is blamed: at fault: %v, checked alone: %v", a.Entry, w.culprits[a.Entry], w.alone[w.tree(a.Entry)])
			}
			if a.State.WithAgent() {
				e.Rounds, e.Asked = e.Rounds+1, agency.AskedNot
			}
			if e.State = a.State; a.Source != "" {
				e.Source = a.Source
			}
		case queue.Check:
			w.begin(a.Tree, a.Entries)
		case queue.Stop:
			w.stop(a.Tree)
		case queue.Move:
			if a.Tree != w.tree(a.Entries...) || !w.green(a.Entries) {
				w.t.Fatalf("%v land as %s, which is green: %v", a.Entries, a.Tree, w.green(a.Entries))
			}
			for _, seq := range a.Entries {
				if slices.Contains(w.landed, seq) {
					w.t.Fatalf("entry %d lands twice", seq)
				}
			}
			w.landed = append(w.landed, a.Entries...)
		case queue.RedBase:
			if !w.broken[w.base] {
				w.t.Fatal("the target is blamed, and is innocent")
			}
			return false
		}
	}
	if len(w.running) > 0 && (len(actions) == 0 || w.random.IntN(3) == 0) {
		w.end()
		return true
	}
	return len(actions) > 0
}

// run lets the queue work until it waits.
func (w *world) run() {
	w.t.Helper()
	for range 50 * len(w.entries) {
		if !w.step() {
			return
		}
	}
	w.t.Fatalf("the queue does not come to an end: %v", w.facts.Verdicts)
}

// In every history of entries, chance, the user's commits and holds, only green files land, each
// entry once, nothing innocent is blamed, and nothing waits for ever.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		w := newWorld(t, seed, 1+int(seed%23))
		w.flaky, w.facts.Lost = float64(seed%4)/10, int(seed%5)
		w.facts.Parallel, w.mixed, w.jealous = 1+int(seed%3), seed%2 == 0, seed%7 == 0
		for i := range w.entries {
			switch w.random.IntN(8) {
			case 0:
				w.culprits[int64(i+1)] = true
				w.stubborn[int64(i+1)] = w.random.IntN(2) == 0
			case 1:
				w.against[int64(i+1)] = 1 + w.random.IntN(3)
			}
		}
		for range 10 {
			for range w.random.IntN(6) {
				w.step()
			}
			switch w.random.IntN(4) {
			case 0:
				w.base++
				w.broken[w.base] = w.random.IntN(2) == 0
			case 1:
				if e := &w.entries[w.random.IntN(len(w.entries))]; e.State.Moving() {
					e.State = agency.EntryHeld
				} else if e.State == agency.EntryHeld {
					e.State = agency.EntryQueued
				}
			case 2:
				w.facts.Paused = !w.facts.Paused
			}
		}
		w.base, w.facts.Paused, w.rests = w.base+5, false, 1
		for i := range w.entries {
			if e := &w.entries[i]; e.State == agency.EntryHeld {
				e.State, e.Rounds = agency.EntryQueued, 0
				w.asked[e.Seq] = 0
			}
		}
		w.run()
		for i := range w.entries {
			want := agency.EntryLanded
			if w.culprits[int64(i+1)] {
				want = agency.EntryFailed
			}
			if e := &w.entries[i]; e.State != want {
				t.Fatalf("seed %d: entry %d ends as %s, not as %s", seed, i+1, e.State, want)
			}
		}
	}
}

func TestOneCulpritOfFifty(t *testing.T) {
	t.Parallel()
	for culprit := range int64(50) {
		for parallel := 1; parallel <= 2; parallel++ {
			w := newWorld(t, uint64(culprit), 50)
			w.culprits[culprit+1], w.facts.Parallel, w.rests = true, parallel, 0
			w.run()
			if w.checks-w.stopped > 15 || w.stopped >= parallel || len(w.landed) != 49 {
				t.Errorf("entry %d is the culprit: %d checks, %d stopped, %d landed", culprit+1, w.checks, w.stopped, len(w.landed))
			}
		}
	}
}

func TestRedBaseBlamesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 7)
	w.broken[0] = true
	w.run()
	if w.checks-w.stopped > 4 || len(w.landed) > 0 {
		t.Errorf("%d checks, %d landed", w.checks, len(w.landed))
	}
	w.base++ // the user mends it
	w.run()
	if len(w.landed) != 7 {
		t.Errorf("%d landed", len(w.landed))
	}
}

func TestEntriesThatWait(t *testing.T) {
	t.Parallel()
	entry := func(state agency.QueueState) agency.QueueEntry {
		return agency.QueueEntry{Seq: 1, State: state, Source: "s"}
	}
	rounds := entry(agency.EntryConflict)
	rounds.Rounds = queue.Rounds
	asked := entry(agency.EntryConflict)
	asked.Rounds, asked.Asked = 1, agency.AskedMessage
	fixing := entry(agency.EntryFixing)
	fixing.Rounds = 1
	fixed := fixing
	fixed.Asked = agency.AskedResume
	waiting := entry(agency.EntryHeld)
	waiting.HeldFor = agency.HeldForTarget
	for _, c := range []struct {
		name  string
		entry agency.QueueEntry
		fact  queue.Fact
		want  string
	}{
		{"conflicts", entry(agency.EntryQueued), queue.Fact{Obstacle: queue.Conflict, Why: "a.txt", Source: "s"}, "settle conflict a.txt"},
		{"was not asked", entry(agency.EntryConflict), queue.Fact{Obstacle: queue.Conflict, Source: "s"}, "tell"},
		{"still conflicts", asked, queue.Fact{Obstacle: queue.Conflict, Source: "s"}, ""},
		{"is being solved", entry(agency.EntryConflict), queue.Fact{Obstacle: queue.Working, Source: "new"}, ""},
		{"is half solved", entry(agency.EntryConflict), queue.Fact{Obstacle: queue.Refused, Why: "not committed", Source: "s"}, ""},
		{"is solved", entry(agency.EntryConflict), queue.Fact{Tree: "t", Source: "new"}, "settle queued"},
		{"was not solved", entry(agency.EntryConflict), queue.Fact{Obstacle: queue.Conflict, Why: "a.txt", Source: "new"}, "settle conflict a.txt"},
		{"was not solved twice", rounds, queue.Fact{Obstacle: queue.Conflict, Why: "a.txt", Source: "new"}, "settle held a.txt"},
		{"does not pass", fixing, queue.Fact{Obstacle: queue.Blamed, Source: "s"}, "tell"},
		{"does not pass still", fixed, queue.Fact{Obstacle: queue.Blamed, Source: "s"}, ""},
		{"is being fixed", fixed, queue.Fact{Obstacle: queue.Working, Source: "s"}, ""},
		{"is fixed", fixed, queue.Fact{Tree: "t", Source: "new"}, "settle queued"},
		{"is fixed and conflicts", fixed, queue.Fact{Obstacle: queue.Conflict, Why: "a.txt", Source: "new"}, "settle conflict a.txt"},
		{"is behind", entry(agency.EntryQueued), queue.Fact{Obstacle: queue.Behind, Why: "b", Source: "s"}, "settle queued b"},
		{"needs approval", entry(agency.EntryQueued), queue.Fact{Obstacle: queue.Unapproved, Why: "ask", Source: "s"}, "settle held ask"},
		{"is held", entry(agency.EntryHeld), queue.Fact{Tree: "t", Source: "s"}, ""},
		{"is in the target", entry(agency.EntryHeld), queue.Fact{Obstacle: queue.Present, Landing: "l_1", Source: "s"}, "settle landed"},
		{"has no branch", entry(agency.EntryReady), queue.Fact{Obstacle: queue.Gone, Why: "no main", Source: "s"}, "settle held no main"},
		{"has no branch and is solved", asked, queue.Fact{Obstacle: queue.Gone, Why: "no main", Source: "s"}, ""},
		{"has no branch still", waiting, queue.Fact{Obstacle: queue.Gone, Why: "no main", Source: "s"}, ""},
		{"works without a branch", waiting, queue.Fact{Obstacle: queue.Working, Why: "busy", Source: "s"}, ""},
		{"has its branch again", waiting, queue.Fact{Tree: "t", Source: "s"}, "settle queued"},
		{"has it again and conflicts", waiting, queue.Fact{Obstacle: queue.Conflict, Why: "a.txt", Source: "s"}, "settle conflict a.txt"},
		{"has nothing", entry(agency.EntryQueued), queue.Fact{Obstacle: queue.Present, Why: "nothing", Source: "s"}, "settle dropped nothing"},
		{"moves on", entry(agency.EntryQueued), queue.Fact{Tree: "t", Source: "new"}, "settle queued"},
	} {
		facts := &queue.Facts{Entries: map[int64]queue.Fact{1: c.fact}, Paused: true}
		got := ""
		for _, a := range queue.Land([]agency.QueueEntry{c.entry}, facts) {
			got = strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Kind, a.State, a.Reason))
		}
		if got != c.want {
			t.Errorf("an entry that %s: %q, want %q", c.name, got, c.want)
		}
	}
}
