package queuer

import (
	"context"
	"fmt"
	"slices"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/queue"
)

// check is one execution of the checks, on what the target becomes with some entries, or on the
// target itself.
type check struct {
	queue.Action       // Entries and Tree
	seen         *look // the look on which it was decided
	stop         context.CancelFunc
	stopped      bool // it ends without a verdict
	distrusted   bool // its verdict does not count
	beside       bool // another check of the queue ran at the same time

	newest []agency.CheckResult // once it has ended
	err    error
}

// begin begins the checks that an action asks for. It reports true when there are none, so that the
// entries may land at once.
func (l *line) begin(ctx context.Context, seen *look, a *queue.Action) (green bool, err error) {
	if seen.checks.None() {
		l.known[a.Tree] = &verdict{Verdict: queue.Verdict{Green: true}}
		killpoint.At("queue.checked")
		return len(a.Entries) > 0, nil
	}
	commit := seen.chain.TargetOld
	if n := len(a.Entries); n > 0 {
		commit = seen.links[a.Entries[n-1]].Landing.Candidate
	}
	env, err := l.readEnv(l.ref.Repo)
	if err != nil {
		return false, err
	}
	again := l.known[a.Tree] != nil && l.known[a.Tree].Reds > 0
	deny := l.Settings().Deny
	ctx, cancel := context.WithCancel(ctx)
	c := &check{Action: *a, seen: seen, stop: cancel, beside: len(l.running) > 0}
	for _, other := range l.running {
		other.beside = true
	}
	l.running, l.checked = append(l.running, c), true
	l.work.Go(func() {
		defer cancel()
		c.newest, c.err = seen.checks.Judge(ctx, commit, again, env, deny)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = append(l.ended, c)
		select {
		case l.woken <- struct{}{}:
		default: // a look is requested already
		}
	})
	return false, nil
}

// collect takes the verdicts of the checks that have ended, and lands the entries that pass. It
// reports whether any check has ended, and whether entries landed.
func (l *line) collect(ctx context.Context) (ended, landed bool, err error) {
	l.mu.Lock()
	all := l.ended
	l.ended = nil
	l.mu.Unlock()
	for _, c := range all {
		l.running = slices.DeleteFunc(l.running, func(other *check) bool { return other == c })
	}
	for _, c := range all {
		switch {
		case c.stopped || c.distrusted:
			continue
		case c.err != nil:
			err = c.err
			continue
		}
		v := l.judged(c)
		killpoint.At("queue.checked")
		// The landing itself finds out whether anything changed meanwhile.
		if !v.Green || len(c.Entries) == 0 || landed || err != nil || l.at != c.seen.chain.TargetOld {
			continue
		}
		var note string
		if note, err = l.move(ctx, c.seen, &c.Action); note != "" {
			l.note(ctx, note)
		}
		landed = err == nil && note == ""
	}
	return len(all) > 0, landed, err
}

// judged adds the result of a check to what is known of its files.
func (l *line) judged(c *check) *verdict {
	v := l.known[c.Tree]
	if v == nil {
		v = &verdict{}
		l.known[c.Tree] = v
	}
	v.newest, v.Green = c.newest, true
	for i := range v.newest {
		if result := &v.newest[i]; result.Verdict != agency.CheckPassed && v.Green {
			v.Green, v.bad = false, "check "+result.Name+" "+result.Reason
		}
	}
	if !v.Green {
		v.Reds++
	}
	v.Alone = v.Alone || !c.beside
	return v
}

// stop ends the checks that match, without a verdict. They count as running until they have ended.
func (l *line) stop(match func(c *check) bool) {
	for _, c := range l.running {
		if match(c) {
			c.stopped = true
			c.stop()
		}
	}
}

// distrust forgets all verdicts, and those of running checks. The record of checks keeps those that
// hold.
func (l *line) distrust() {
	l.known = map[string]*verdict{}
	for _, c := range l.running {
		c.distrusted = true
	}
}

// checking reports whether checks run on an entry. ahead explains to users that the first entries are
// checked beside it; it is empty for the first ones.
func (l *line) checking(seq int64) (checks bool, ahead string) {
	first := 0 // how many entries the shortest check has
	var own []int64
	for _, c := range l.running {
		if c.stopped || len(c.Entries) == 0 {
			continue
		}
		if first == 0 || len(c.Entries) < first {
			first = len(c.Entries)
		}
		if slices.Contains(c.Entries, seq) && (own == nil || len(c.Entries) < len(own)) {
			own = c.Entries
		}
	}
	if len(own) > first {
		ahead = fmt.Sprintf("the checks of %s run on it and on what is before it, beside those on the first %d", l.ref.Target, first)
	}
	return own != nil, ahead
}
