package watchdog

import (
	"fmt"
	"time"

	"agency"
)

// busyCPU is the share of one core above which a worker's processes do something.
const busyCPU = 0.05

// signs are when a worker was last seen to do something, by each way of seeing it. Zero is unknown.
type signs struct{ word, heard, output, input, started time.Time }

func signsOf(w *Worker) signs {
	a := &w.Run.Attempt
	s := signs{word: a.Word.At, heard: a.AgentState.HeardAt, output: w.OutputAt}
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

// moved says that the worker did something since: a sign is another one than before, be it later or, after a clock was set back,
// earlier. What was unknown before, in the first moments of a daemon, and is old, is no news.
func (s signs) moved(before signs, since time.Time) bool {
	then := before.all()
	for i, at := range s.all() {
		if !at.Equal(then[i]) && (!then[i].IsZero() || at.After(since)) {
			return true
		}
	}
	return false
}

// inactivity is what is known of a worker that is said to work: since when nothing about it moved.
type inactivity struct {
	attempt int
	signs   signs
	since   time.Time
	stuck   bool // it was told of, perhaps by a watchdog before this one
	// activity and pulsed are the last measurement; pulsed is zero while there was none.
	activity agency.Activity
	pulsed   time.Time
}

// timeout is how long a worker may be silent before it is stuck. Something long that is known to go on, a tool, work in the
// background, or a call of a model, has the longer threshold. That a model is called is known from what the agent tells; a
// wheel that turns on its screen proves nothing. What the run itself sets wins over the settings.
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

// stuck keeps watch over one worker that is said to work. It returns the condition when the worker is stuck, and when to look
// again. Processor time and files are measured only when all else is silent, once in each of the last intervals before the end.
func (w *Watchdog) stuck(s *Settings, worker *Worker, open []agency.Alert, now time.Time) (c Condition, next time.Time) {
	q := w.silent(worker, open, now)
	timeout := s.timeout(worker)
	if quiet := worker.Run.Attempt.AgentState.QuietUntil; quiet.After(q.since) {
		timeout = max(timeout, quiet.Sub(q.since))
	}
	// One measurement says nothing, so the first comes an interval before the end at the latest.
	first := max(min(s.Poll, timeout-s.Poll), timeout-s.stuckAfter(worker.Run))
	silent := w.Elapsed(q.since)
	if !q.stuck && silent < first {
		return c, now.Add(first - silent)
	}
	if wait := s.Poll - w.Elapsed(q.pulsed); q.pulsed.IsZero() || wait <= 0 {
		activity := w.Runs.Activity(worker)
		before := q.since
		q.takes(activity, w.Elapsed(q.pulsed), now)
		if silent = w.Elapsed(q.since); q.since.After(before) {
			q.stuck = false
		} else if !q.pulsed.IsZero() && silent >= timeout {
			q.stuck = true
		}
		q.activity, q.pulsed, next = activity, now, now.Add(s.Poll)
	} else {
		next = now.Add(wait) // a moment is too short to tell from
	}
	if q.stuck {
		c = Condition{Kind: agency.AlertStuck, Cause: cause(q.since), Since: q.since, Text: worker.Status.Summary}
	}
	if later := now.Add(first - silent); later.After(next) {
		next = later
	}
	return c, next
}

// retrying is the condition of a worker whose model failed for as long as a silence may last, while it tries again without end. Else
// it says when that can be; zero is never.
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

// sooner is the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// silent is the silence of a worker as it is now. One that was told of before the daemon started again goes on; any other begins
// with the newest sign of life, and for a watchdog that sees the worker for the first time, or whose clock was ahead, with that moment.
func (w *Watchdog) silent(worker *Worker, open []agency.Alert, now time.Time) *inactivity {
	id, number, signs := worker.Run.ID, worker.Run.Attempt.Number, signsOf(worker)
	q := w.inactivity[id]
	switch {
	case q == nil || q.attempt != number || q.since.After(now) || q.pulsed.After(now):
		q = &inactivity{attempt: number, since: now}
		if since, told := toldOf(open, number); told && since.Before(now) && !signs.newest().After(since) {
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

// takes ends the silence, and begins another, where a measurement tells of work: by files, or by the processor time since the
// measurement before, so long ago.
func (q *inactivity) takes(activity agency.Activity, passed time.Duration, now time.Time) {
	measured := !q.pulsed.IsZero()
	switch files := activity.FilesAt; {
	case measured && float64(activity.CPU-q.activity.CPU) > busyCPU*float64(passed):
		q.since = now
	case files.After(q.since) && !files.After(now):
		q.since = files
	case measured && files.After(q.activity.FilesAt) && files.After(now):
		q.since = now // the clock of the files is ahead
	}
}

// cause names one silence.
func cause(since time.Time) string { return fmt.Sprintf("silent %d", since.UnixNano()) }

// toldOf finds the silence of an attempt among open alerts, and since when it lasts.
func toldOf(open []agency.Alert, attempt int) (since time.Time, told bool) {
	for i := range open {
		var nanos int64
		if n, err := fmt.Sscanf(open[i].Cause, "silent %d", &nanos); n == 1 && err == nil && open[i].Attempt == attempt {
			return time.Unix(0, nanos), true
		}
	}
	return time.Time{}, false
}
