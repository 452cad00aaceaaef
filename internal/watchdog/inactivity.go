package watchdog

import (
	"fmt"
	"time"

	"agency"
)

// busyCPU is the share of one core above which a worker's processes count as active.
const busyCPU = 0.05

// signs are the times of a worker's newest activity, by kind of sign. Zero is unknown.
type signs struct{ word, heard, output, input, started time.Time }

func signsOf(w *Worker) signs {
	a := &w.Run.Attempt
	s := signs{word: a.Reported.At, heard: a.AgentState.HeardAt, output: w.OutputAt}
	if a.InputAt != nil {
		s.input = *a.InputAt
	}
	if a.StartedAt != nil {
		s.started = *a.StartedAt
	}
	return s
}

func (s signs) all() []time.Time { return []time.Time{s.word, s.heard, s.output, s.input, s.started} }

func (s signs) newest() time.Time {
	newest := time.Time{}
	for _, at := range s.all() {
		if at.After(newest) {
			newest = at
		}
	}
	return newest
}

// moved reports whether the worker was active since the given time. A sign is activity when it
// differs from before, whether it is later or, after a clock was set back, earlier. An old sign
// that was unknown before, in the first moments of a daemon, does not count.
func (s signs) moved(before signs, since time.Time) bool {
	then := before.all()
	for i, at := range s.all() {
		if !at.Equal(then[i]) && (!then[i].IsZero() || at.After(since)) {
			return true
		}
	}
	return false
}

// inactivity describes a worker that counts as working: since when it has shown no sign of life.
type inactivity struct {
	attempt int
	signs   signs
	since   time.Time
	stuck   bool // an alert was sent, perhaps by an earlier watchdog
	// activity and pulsed are the last measurement and its time; pulsed is zero before the first.
	activity   agency.Activity
	measuredAt time.Time
}

// timeout returns how long a worker may be inactive before it is stuck. The longer threshold
// applies while something long is known to run: a tool, background work, or a model call. A model
// call is known from the agent's reports; a spinner on its screen proves nothing. A run's own
// settings take precedence.
func (s *Settings) timeout(w *Worker) time.Duration {
	a := &w.Run.Attempt
	calls := a.AgentState.Turn == agency.TurnWorking && a.AgentState.TurnBy != agency.FromScreen
	if long := calls || len(a.AgentState.Tools) > 0 || a.AgentState.Background > 0; !long {
		return s.stuckAfter(w.Run)
	}
	stall := s.StallThreshold
	if own := w.Run.StallAfterMS; own > 0 {
		stall = time.Duration(own) * time.Millisecond
	}
	return max(stall, s.stuckAfter(w.Run))
}

func (s *Settings) stuckAfter(r *agency.Run) time.Duration {
	intervals := s.StuckIntervals
	if r.StuckIntervals > 0 {
		intervals = r.StuckIntervals
	}
	return time.Duration(intervals) * s.Poll
}

// stuck watches one worker that counts as working. It returns the condition when the worker is
// stuck, and when to look again. Processor time and files are measured only when there are no other
// signs, once in each of the last intervals before the timeout.
func (w *Watchdog) stuck(s *Settings, worker *Worker, open []agency.Alert, now time.Time) (c Condition, next time.Time) {
	q := w.silent(worker, open, now)
	timeout := s.timeout(worker)
	if quiet := worker.Run.Attempt.AgentState.QuietUntil; quiet.After(q.since) {
		timeout = max(timeout, quiet.Sub(q.since))
	}
	// One measurement alone proves nothing, so the first comes at least one interval before the
	// end.
	first := max(min(s.Poll, timeout-s.Poll), timeout-s.stuckAfter(worker.Run))
	silent := w.Elapsed(q.since)
	if !q.stuck && silent < first {
		return c, together(now.Add(first-silent), s.Poll)
	}
	if wait := s.Poll - w.Elapsed(q.measuredAt); q.measuredAt.IsZero() || wait <= 0 {
		activity := w.Runs.Activity(worker)
		before := q.since
		q.measured(activity, w.Elapsed(q.measuredAt), now)
		if silent = w.Elapsed(q.since); q.since.After(before) {
			q.stuck = false
		} else if !q.measuredAt.IsZero() && silent >= timeout {
			q.stuck = true
		}
		q.activity, q.measuredAt, next = activity, now, now.Add(s.Poll)
	} else {
		next = now.Add(wait) // the interval is too short to measure
	}
	if q.stuck {
		c = Condition{Kind: agency.AlertStuck, Cause: cause(q.since), Since: q.since, Text: worker.Status.Summary}
	}
	if later := now.Add(first - silent); later.After(next) {
		next = later
	}
	return c, together(next, s.Poll)
}

// together moves the time of a look to the next thirtieth of an interval, so that one wake-up
// serves the measurements of many runs.
func together(at time.Time, interval time.Duration) time.Time {
	grid := max(interval/30, 1)
	return at.Add(grid - 1).Truncate(grid)
}

// retrying returns the condition of a worker whose model has failed for the whole timeout while the
// worker keeps retrying. Otherwise it returns when that can happen; zero is never.
func (w *Watchdog) retrying(s *Settings, worker *Worker, now time.Time) (c Condition, next time.Time) {
	a := &worker.Run.Attempt
	retry := a.AgentState.Retry
	if retry == nil || a.AgentState.Turn != agency.TurnWorking {
		return c, time.Time{}
	}
	if left := s.timeout(worker) - w.Elapsed(retry.At); left > 0 {
		return c, now.Add(left)
	}
	return Condition{
		Kind: agency.AlertStuck, Cause: fmt.Sprintf("retrying %d", retry.At.UnixNano()), Since: retry.At, Class: retry.Class, Text: retry.Text,
	}, time.Time{}
}

// sooner returns the earlier of two times, where zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// silent returns the current inactivity of a worker. One with an alert from before a daemon restart
// continues. Any other begins with the newest sign of life, or, if the watchdog sees the worker for
// the first time or its clock was ahead, with the current moment.
func (w *Watchdog) silent(worker *Worker, open []agency.Alert, now time.Time) *inactivity {
	id, number, signs := worker.Run.ID, worker.Run.Attempt.Number, signsOf(worker)
	q := w.inactivity[id]
	switch {
	case q == nil || q.attempt != number || q.since.After(now) || q.measuredAt.After(now):
		q = &inactivity{attempt: number, since: now}
		if since, found := lastNotified(open, number); found && since.Before(now) && !signs.newest().After(since) {
			q.since, q.stuck = since, true
		}
		w.inactivity[id] = q
	case signs.moved(q.signs, q.since):
		since := signs.newest()
		if !since.After(q.since) || since.After(now) {
			since = now
		}
		q = &inactivity{attempt: number, since: since}
		w.inactivity[id] = q
	}
	q.signs = signs
	return q
}

// measured ends the inactivity and begins another if a measurement shows work: by changed files, or by
// the processor time used in passed, the time since the previous measurement.
func (q *inactivity) measured(activity agency.Activity, passed time.Duration, now time.Time) {
	measured := !q.measuredAt.IsZero()
	switch files := activity.FilesAt; {
	case measured && float64(activity.CPU-q.activity.CPU) > busyCPU*float64(passed):
		q.since = now
	case files.After(q.since) && !files.After(now):
		q.since = files
	case measured && files.After(q.activity.FilesAt) && files.After(now):
		q.since = now // the clock of the files is ahead
	}
}

// cause returns the name of one inactivity.
func cause(since time.Time) string { return fmt.Sprintf("silent %d", since.UnixNano()) }

// lastNotified finds the inactivity of an attempt among open alerts, and when it began.
func lastNotified(open []agency.Alert, attempt int) (since time.Time, found bool) {
	for i := range open {
		var nanos int64
		if n, err := fmt.Sscanf(open[i].Cause, "silent %d", &nanos); n == 1 && err == nil && open[i].Attempt == attempt {
			return time.Unix(0, nanos), true
		}
	}
	return time.Time{}, false
}
