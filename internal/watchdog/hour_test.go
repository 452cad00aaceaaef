package watchdog_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/watchdog"
)

// moment is one line of a recording: an action of a worker, and its time.
type moment struct {
	at time.Duration
	do func(w *worker)
}

func prompted(w *worker) { begins(&w.run) }
func toolStarts(w *worker) {
	begins(&w.run, "1")
	w.output = time.Now()
}

func toolEnds(w *worker) {
	begins(&w.run)
	w.output = time.Now()
}
func prints(w *worker)     { w.output = time.Now() }
func writesFile(w *worker) { w.activity.FilesAt = time.Now() }
func crunches(w *worker)   { w.busy, w.begun = true, time.Now() }
func idles(w *worker) {
	w.activity.CPU += time.Since(w.begun)
	w.busy = false
}

func announces(w *worker) {
	w.run.Attempt.AgentState.QuietUntil = time.Now().Add(25 * time.Minute)
	w.run.Attempt.AgentState.HeardAt = time.Now()
}

// minutes is a time since the beginning of the hour.
func minutes(minutes, seconds int) time.Duration {
	return time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
}

// healthyHour is what three workers do in an hour, recorded from real ones.
var healthyHour = map[string][]moment{
	// A compiler that prints nothing for 22 minutes, then links for 4 on one file.
	"compile": {
		{minutes(0, 3), prompted},
		{minutes(0, 40), toolStarts},
		{minutes(0, 41), crunches},
		{minutes(22, 50), writesFile},
		{minutes(26, 55), idles},
		{minutes(26, 55), toolEnds},
		{minutes(27, 30), toolStarts},
		{minutes(27, 31), toolEnds},
		{minutes(28, 20), toolStarts},
		{minutes(28, 21), crunches},
		{minutes(59, 30), idles},
		{minutes(59, 31), toolEnds},
	},
	// Calls of a model that thinks for up to eleven minutes behind a spinner, whose output does
	// not count as new.
	"model": {
		{minutes(0, 2), prompted},
		{minutes(4, 30), toolStarts},
		{minutes(4, 31), toolEnds},
		{minutes(15, 28), prints},
		{minutes(15, 40), toolStarts},
		{minutes(15, 41), toolEnds},
		{minutes(22, 10), toolStarts},
		{minutes(22, 12), toolEnds},
		{minutes(33, 0), toolStarts},
		{minutes(33, 1), toolEnds},
		{minutes(44, 0), prints},
		{minutes(53, 20), toolStarts},
		{minutes(53, 22), toolEnds},
	},
	// A large test run of a script that prints a line now and then, waits for a database, and
	// once announces a quiet time.
	"tests": {
		{minutes(0, 1), prints},
		{minutes(0, 50), prints},
		{minutes(1, 50), crunches},
		{minutes(9, 10), idles},
		{minutes(9, 55), prints},
		{minutes(10, 40), writesFile},
		{minutes(11, 50), prints},
		{minutes(12, 30), announces},
		{minutes(37, 0), prints},
		{minutes(37, 10), crunches},
		{minutes(59, 59), idles},
	},
}

// One hour of three healthy workers, recorded from real ones, makes no alert, for any polling
// interval.
func TestHealthyHour(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{5 * time.Second, poll, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			settings := w.settings()
			settings.Poll, settings.StuckIntervals = interval, int(3*poll/interval)
			w.dog.Set(settings)
			for name, moments := range healthyHour {
				worker := w.add(name)
				for _, moment := range moments {
					time.AfterFunc(moment.at, func() {
						if name == "tests" {
							w.mu.Lock() // it has no hooks: no event reaches the watchdog
							defer w.mu.Unlock()
							moment.do(worker)
							return
						}
						w.tell(worker, func() { moment.do(worker) })
					})
				}
			}
			w.pass(time.Hour)
			w.want()
		})
	}
}

// A clock that is set forward, or a machine that slept, makes no worker stuck: only elapsed time
// counts.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.dog.Stop()
		var mu sync.Mutex
		var ahead time.Duration // of the system's clock, since it was set
		setAt := time.Now()
		w.dog = watchdog.New(watchdog.Deps{
			Runs: w, Store: w, Sink: w, Disks: w.Disks, Log: w.dog.Log, NewID: w.dog.NewID,
			Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Add(ahead)
			},
			Elapsed: func(since time.Time) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				passed := time.Now().Add(ahead).Sub(since)
				if since.Before(setAt.Add(time.Second)) {
					passed -= ahead
				}
				return passed
			},
		}, w.settings())
		if err := w.dog.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		worker := w.add("a")
		w.pass(40 * time.Second)
		mu.Lock()
		setAt, ahead = time.Now(), 8*time.Hour
		mu.Unlock()
		w.change(worker, func() {}) // the machine wakes up, with many events
		w.pass(50*time.Second - time.Nanosecond)
		w.want()
		w.pass(time.Nanosecond)
		w.want(agency.AlertStuck)
	})
}

// A worker that alternates between two states makes one alert for each: a state that ends within an
// interval is not hidden, and not repeated.
func TestFlapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		for range 5 {
			w.change(worker, func() { asks(&worker.run, "Which?") })
			w.pass(time.Second)
			w.change(worker, func() { works(&worker.run) })
			w.pass(time.Second)
		}
		if w.open() != 0 || len(w.kinds()) != 5 || len(w.notifications()) != 5 {
			t.Errorf("%d are open; alerts %q, notified %q", w.open(), w.kinds(), w.notifications())
		}
		// The end of a turn that continues at once makes no alert.
		for range 50 {
			w.change(worker, func() { deeds["rests"](w, worker) })
			w.pass(59 * time.Second)
			w.change(worker, func() { begins(&worker.run) })
			w.pass(time.Second)
		}
		if len(w.kinds()) != 5 {
			t.Errorf("alerts %q", w.kinds())
		}
	})
}

// A run's own timeouts override the settings, for both thresholds.
func TestOwnTimeout(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set   func(r *agency.Run)
		after time.Duration
	}{
		"fewer intervals":     {func(r *agency.Run) { r.StuckIntervals = 1 }, poll},
		"more intervals":      {func(r *agency.Run) { r.StuckIntervals = 20 }, 20 * poll},
		"a tool":              {func(r *agency.Run) { r.StallAfterMS = 240_000; begins(r, "1") }, 4 * time.Minute},
		"stall below stuck":   {func(r *agency.Run) { r.StallAfterMS = 1; begins(r, "1") }, 3 * poll},
		"stall without cause": {func(r *agency.Run) { r.StallAfterMS = 3_600_000 }, 3 * poll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				worker := w.add("a")
				w.change(worker, func() { tt.set(&worker.run) })
				w.pass(tt.after - time.Nanosecond)
				w.want()
				w.pass(time.Nanosecond)
				w.want(agency.AlertStuck)
			})
		})
	}
}

// New settings apply at once, also to the choice of workers.
func TestSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { worker.run.Tags = []string{"builder"}; asks(&worker.run, "Which?") })
		w.pass(time.Hour)
		w.want()
		settings := w.settings()
		settings.WorkerTags = []string{"builder"}
		w.dog.Set(settings)
		synctest.Wait()
		w.want(agency.AlertNeedsInput)
		w.dog.Set(w.settings())
		synctest.Wait()
		if w.open() != 0 {
			t.Error("it is no worker any more, and its alert is open")
		}
	})
}

// The events of an alert make the watchdog look at once. That moment is too short to distinguish
// work from rest, so a hung worker whose process wakes up now and then stays stuck.
func TestStuckStaysStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.pass(3 * poll)
		w.want(agency.AlertStuck)
		for range 20 {
			time.Sleep(time.Millisecond)
			w.change(worker, func() { worker.activity.CPU += 10 * time.Millisecond })
		}
		w.pass(10 * poll)
		w.want(agency.AlertStuck)
		if w.open() != 1 {
			t.Error("the alert is closed")
		}
	})
}
