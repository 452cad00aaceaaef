package watchdog

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"agency"
)

// busyCPU is the share of one core above which a worker's processes do something.
const busyCPU = 0.05

// silence is what is known of a worker that is said to work: since when nothing about it moved.
type silence struct {
	attempt int
	print   string // of all that means progress
	since   time.Time
	told    bool // by a watchdog before this one
	// pulse and pulsed are the last measurement, made when the worker had been silent for a while.
	pulse  Pulse
	pulsed time.Time
}

// fingerprint is made of facts that mean progress, and of no clock: it changes only when the worker does something.
func fingerprint(w *Worker) string {
	a := &w.Run.Attempt
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, a.Number, a.State, a.Word.At.UnixMilli(), a.Situation.HeardAt.UnixMilli(), w.OutputAt.UnixMilli())
	if a.InputAt != nil {
		_, _ = fmt.Fprintln(h, a.InputAt.UnixMilli())
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// patience is how long a worker may be silent before it is stuck. Something long that is known to go on, a tool, a call of
// a model that shows no output, or a silence that was announced, has the longer threshold.
func (s *Settings) patience(w *Worker) time.Duration {
	a := &w.Run.Attempt
	long := len(a.Situation.Tools) > 0 || a.Situation.Background > 0 || a.Headless && a.Situation.Turn == agency.TurnWorking
	if long {
		return max(s.StallThreshold, s.stuckAfter())
	}
	return s.stuckAfter()
}

func (s *Settings) stuckAfter() time.Duration { return time.Duration(s.StuckIntervals) * s.Poll }

// stuck keeps watch over one worker that is said to work. It returns the condition when the worker is stuck, and when to look
// again. Processor time and files are measured only when all else is silent: once an interval before the end, and at it.
//
// A silence that was told of before the daemon started again goes on; any other begins with the start.
func (w *Watchdog) stuck(ctx context.Context, s *Settings, worker *Worker, open []agency.Alert, now time.Time) (agency.Condition, time.Time, error) {
	id, number, mark := worker.Run.ID, worker.Run.Attempt.Number, fingerprint(worker)
	q := w.silence[id]
	if q == nil || q.attempt != number || q.print != mark || now.Before(q.since) {
		q = &silence{attempt: number, print: mark, since: now}
		if since, told := toldOf(open, mark); told && since.Before(now) {
			q.since, q.told = since, true
		}
		w.silence[id] = q
	}
	stuck := agency.Condition{Kind: agency.AlertStuck, Cause: cause(mark, q.since), Since: q.since, Text: worker.Status.Summary}
	patience := s.patience(worker)
	if quiet := worker.Run.Attempt.Situation.QuietUntil; quiet.After(q.since) {
		patience = max(patience, quiet.Sub(q.since))
	}
	measure, end := q.since.Add(patience-s.Poll), q.since.Add(patience)
	if now.Before(measure) {
		return agency.Condition{}, measure, nil
	}
	pulse, err := w.Runs.Pulse(ctx, worker)
	if err != nil {
		return agency.Condition{}, time.Time{}, fmt.Errorf("measure %s: %w", worker.Run.Ref(), err)
	}
	before, passed := q.pulse, now.Sub(q.pulsed)
	first := q.pulsed.IsZero()
	q.pulse, q.pulsed = pulse, now
	switch {
	case first && q.told:
		return stuck, now.Add(s.Poll), nil
	case first && now.Before(end):
		return agency.Condition{}, end, nil
	case first:
		// Nobody measured an interval ago, so this is where one begins.
		return agency.Condition{}, now.Add(s.Poll), nil
	case passed > 0 && float64(pulse.CPU-before.CPU) > busyCPU*float64(passed), pulse.FilesAt.After(before.FilesAt):
		q.since, q.told = now, false
		return agency.Condition{}, now.Add(max(patience-s.Poll, s.Poll)), nil
	case now.Before(end):
		return agency.Condition{}, end, nil
	}
	return stuck, now.Add(s.Poll), nil
}

// cause names one silence.
func cause(mark string, since time.Time) string {
	return fmt.Sprintf("silent %s %d", mark, since.UnixNano())
}

// toldOf finds the silence with a fingerprint among open alerts, and since when it lasts.
func toldOf(open []agency.Alert, mark string) (since time.Time, told bool) {
	for i := range open {
		var nanos int64
		if n, err := fmt.Sscanf(open[i].Cause, "silent "+mark+" %d", &nanos); n == 1 && err == nil {
			return time.Unix(0, nanos), true
		}
	}
	return time.Time{}, false
}
