package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agency"
	"agency/internal/duration"
)

const (
	// sendTimeout bounds one try.
	sendTimeout = 15 * time.Second
	// mostTries is how often a notice is tried: at once, after a second, and then after pauses that
	// triple, about a day in all.
	mostTries  = 12
	firstPause = time.Second
	// testTries is the same for a test, which must not arrive tomorrow.
	testTries = 3
	// outboxPause is the pause after an outbox could not be read or written.
	outboxPause = 5 * time.Second
	// longestSleep bounds a sleep, in case the timer stopped while the machine slept, the clock was
	// set, or an older notifier got a notice at the moment of the change.
	longestSleep = time.Minute
	// longestWait is longer than any notice is delayed: by the last pause, or by the quiet hours of
	// a day on which clocks are set back.
	longestWait = 25 * time.Hour
)

// final is an error that another try would repeat.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// worker is a channel and the one goroutine that sends through it.
type worker struct {
	Route
	wakeups chan struct{}
}

func (l *worker) wake() {
	select {
	case l.wakeups <- struct{}{}:
	default: // it will look anyhow
	}
}

// serve sends the channel's dispatches until ctx ends.
func (n *Notifier) serve(ctx context.Context, l *worker) {
	for ctx.Err() == nil {
		next, err := n.work(ctx, l)
		pause := longestSleep
		switch {
		case err != nil && ctx.Err() == nil:
			n.Log.Error("outbox", "channel", l.Channel.Name(), "err", err)
			pause = outboxPause
		case !next.IsZero():
			pause = min(pause, max(next.Sub(n.Now()), time.Millisecond))
		}
		sleep(ctx, pause, l.wakeups)
	}
}

// sleep waits until a time, until it is woken, or until ctx ends.
func sleep(ctx context.Context, pause time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// work sends what is due, and returns when the next dispatch is due; zero when none waits.
func (n *Notifier) work(ctx context.Context, l *worker) (next time.Time, err error) {
	for {
		now := n.Now()
		latest := now.Add(longestWait) // a later time was set when the clock was ahead
		d, err := n.Outbox.NextDispatch(ctx, l.Channel.Name(), now, latest)
		switch {
		case err != nil || d == nil:
			return time.Time{}, err
		case d.DueAt.After(now) && !d.DueAt.After(latest):
			return d.DueAt, nil
		}
		if end, quiet := n.Quiet.Until(now.In(n.Zone)); quiet && !l.urgent(&d.Notice) {
			d.DueAt = end
		} else if !n.try(ctx, l, d) {
			return time.Time{}, nil // it is stopping, and starts with this one next time
		}
		if err := n.record(ctx, d); err != nil {
			return time.Time{}, err
		}
	}
}

// try sends one notice and stores the outcome in the dispatch. It returns false when the outcome is
// unknown.
func (n *Notifier) try(ctx context.Context, l *worker, d *agency.Dispatch) bool {
	sending, cancel := context.WithTimeoutCause(ctx, sendTimeout, fmt.Errorf("no answer within %s", duration.Text(sendTimeout)))
	defer cancel()
	err := l.Channel.Send(sending, &d.Notice)
	if err != nil && ctx.Err() != nil {
		return false
	}
	if err != nil && errors.Is(err, sending.Err()) {
		err = context.Cause(sending)
	}
	now := n.Now()
	d.Tries++
	if err == nil {
		d.SentAt = &now
		return true
	}
	d.FailedAt, d.Error = &now, words(err)
	_, hopeless := errors.AsType[final](err)
	most := mostTries
	if d.Notice.Kind == agency.TestNotice {
		most = testTries
	}
	if hopeless || d.Tries >= most {
		d.DeadAt = &now
	} else {
		d.DueAt = now.Add(n.pause(d.Tries))
	}
	n.Log.Warn("notice not sent", "channel", l.Channel.Name(), "notice", d.Notice.ID, "try", d.Tries, "dead", d.DeadAt != nil, "err", err)
	return true
}

// pause is the time after the given try, varied by up to a quarter so that notices that failed
// together are not retried together.
func (n *Notifier) pause(tries int) time.Duration {
	return time.Duration(float64(usualPause(tries)) * (0.75 + n.Random()/2))
}

func usualPause(tries int) time.Duration {
	pause := firstPause
	for range tries - 1 {
		pause *= 3
	}
	return pause
}

// released returns when a delayed dispatch would be due without the quiet hours.
func released(d *agency.Dispatch, now time.Time) time.Time {
	if d.Tries == 0 || d.FailedAt == nil {
		return now
	}
	return d.FailedAt.Add(usualPause(d.Tries) * 5 / 4)
}

// record writes the outcome of a try, and retries until it succeeds or the worker stops: a notice
// whose success is not recorded would be sent again. A stop waits for one attempt.
func (n *Notifier) record(ctx context.Context, d *agency.Dispatch) error {
	for {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxPause)
		err := n.Outbox.RecordDispatch(writing, d)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		n.Log.Error("record a notice", "channel", d.Channel, "notice", d.Notice.ID, "err", err)
		sleep(ctx, outboxPause, nil)
	}
}
