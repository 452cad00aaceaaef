package watchdog_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/status"
	"agency/internal/watchdog"
)

// step is one thing that happens in a history.
type step struct {
	what   string
	wait   time.Duration // before it
	unseen bool          // no daemon runs when it happens
}

func (s step) String() string {
	return fmt.Sprintf("%s after %s, unseen: %v", s.what, s.wait, s.unseen)
}

// deeds change a worker; time, restarts and users who look change nothing about it.
var deeds = map[string]func(w *world, worker *worker){
	"asks":     func(_ *world, worker *worker) { asks(&worker.run, "Which?") },
	"works":    func(_ *world, worker *worker) { works(&worker.run) },
	"fails":    func(_ *world, worker *worker) { ends(&worker.run, agency.Failed, "") },
	"is lost":  func(_ *world, worker *worker) { ends(&worker.run, agency.Failed, agency.CodeRunnerDisappeared) },
	"is done":  func(_ *world, worker *worker) { ends(&worker.run, agency.Completed, "") },
	"says":     func(_ *world, worker *worker) { worker.output = time.Now() },
	"hears":    func(_ *world, worker *worker) { worker.run.Attempt.AgentState.HeardAt = time.Now() },
	"writes":   func(_ *world, worker *worker) { worker.activity.FilesAt = time.Now() },
	"tool":     func(_ *world, worker *worker) { begins(&worker.run, "1") },
	"tool end": func(_ *world, worker *worker) { begins(&worker.run) },
	"prints":   func(_ *world, worker *worker) { printsError(worker, "error: quota") },
	"prompts":  func(_ *world, worker *worker) { observes(worker, agency.Evidence{Signal: agency.SignalAsked, ID: "2"}) },
	"goes on": func(_ *world, worker *worker) {
		observes(worker, agency.Evidence{Signal: agency.SignalAnswered, ID: "2"})
	},
	"limit": func(_ *world, worker *worker) {
		observes(worker, agency.Evidence{Signal: agency.SignalFailed, Class: agency.ErrorRateLimit})
	},
	"reports": func(_ *world, worker *worker) {
		observes(worker, agency.Evidence{Signal: agency.SignalReport, Report: agency.ReportsError, Text: "no disk"})
	},
	"reports work": func(_ *world, worker *worker) {
		observes(worker, agency.Evidence{Signal: agency.SignalReport, Report: agency.ReportsStatus})
	},
	"rests": func(_ *world, worker *worker) {
		s := &worker.run.Attempt.AgentState
		s.Turn, s.TurnAt, s.HeardAt, s.Tools = agency.TurnEnded, time.Now(), time.Now(), nil
	},
	"again": func(_ *world, worker *worker) {
		now := time.Now()
		worker.run.Attempt = agency.Attempt{Number: worker.run.Attempt.Number + 1, State: agency.Running, CreatedAt: now, StartedAt: &now}
		works(&worker.run)
	},
}

// begins leaves the agent at work with these tools open.
func begins(r *agency.Run, tools ...string) {
	s := &r.Attempt.AgentState
	s.Turn, s.HeardAt, s.Tools = agency.TurnWorking, time.Now(), nil
	for _, id := range tools {
		s.Tools = append(s.Tools, agency.Tool{ID: id, At: time.Now()})
	}
}

// observes updates the state of a worker from the evidence of a hook.
func observes(worker *worker, e agency.Evidence) {
	e.At, e.Source = time.Now(), cmp.Or(e.Source, agency.FromHook)
	status.Observe(&worker.run.Attempt.AgentState, e)
}

// printsError makes the output of a worker show a line that matches an error pattern.
func printsError(worker *worker, line string) {
	a := &worker.run.Attempt
	e := agency.Evidence{At: time.Now(), Source: agency.FromOutput, Signal: agency.SignalPrinted, Text: line}
	if status.ErrorStands(a, active(worker)) {
		e.Event = agency.EventContinued
	}
	status.Observe(&a.AgentState, e)
	worker.output = time.Now()
}

// active returns the time of a worker's newest sign of life.
func active(worker *worker) time.Time {
	a := &worker.run.Attempt
	newest := worker.output
	for _, at := range []time.Time{a.AgentState.HeardAt, a.Reported.At, *a.StartedAt} {
		if at.After(newest) {
			newest = at
		}
	}
	return newest
}

// Any history has one alert for each episode: between two of the same kind is a deed of the worker,
// never only time, a restart or a look. An alert that is due at the end exists.
func TestOneAlertPerEpisode(t *testing.T) {
	t.Parallel()
	names := []string{"restart", "restart", "restart", "attach", "detach", "set", "typo"}
	for name := range deeds {
		names = append(names, name)
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			rapid.SampledFrom(names).Draw(t, "what"),
			time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(20*time.Minute)).Draw(t, "wait")),
			rapid.IntRange(0, 3).Draw(t, "unseen") == 3,
		}
	}), 1, 25)
	rapid.Check(t, func(rt *rapid.T) {
		history := steps.Draw(rt, "history")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = live(t, history) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// settledWrong returns what is wrong with the open alerts of a worker after a long time; empty for
// nothing.
func (w *world) settledWrong(worker *worker) string {
	shown := status.Derive(status.Facts{Run: &worker.run, StallThreshold: stall}, time.Now())
	want := watchdog.Alarm(&worker.run, shown, active(worker), time.Now()).Kind
	if want == "" && watchdog.Watchable(shown.Label) {
		want = agency.AlertStuck
	}
	open, _ := w.Alerts(context.Background(), agency.AlertFilter{})
	if want != "" && (len(open) != 1 || open[0].Kind != want) {
		return fmt.Sprintf("it is %s, and the open alerts are %v, not %s", shown.Label, w.kinds(), want)
	}
	return ""
}

// alertsSeen are the alerts of a history so far.
type alertsSeen struct {
	deeds, alerts int
	last          map[agency.AlertKind]int // the number of deeds at the newest alert
}

// wrong returns what is wrong with the alerts at a step: several are open, or one comes again
// without a deed.
func (s *alertsSeen) wrong(w *world, at step) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := 0
	for i := range w.alerts {
		if w.alerts[i].Open() {
			open++
		}
	}
	if open > 1 {
		return fmt.Sprintf("%d alerts are open at %s", open, at)
	}
	for ; s.alerts < len(w.alerts); s.alerts++ {
		kind := w.alerts[s.alerts].Kind
		if before, ok := s.last[kind]; ok && before == s.deeds {
			return fmt.Sprintf("%s comes again at %s, without a deed", kind, at)
		}
		s.last[kind] = s.deeds
	}
	return ""
}

// live runs a history, and returns what is wrong.
func live(t *testing.T, history []step) string {
	w := newWorld(t)
	worker := w.add("a")
	seen := &alertsSeen{last: map[agency.AlertKind]int{}}
	for _, at := range history {
		w.pass(at.wait)
		if problem := seen.wrong(w, at); problem != "" {
			return problem
		}
		switch at.what {
		case "restart":
			w.restart()
		case "set":
			w.dog.Set(w.settings())
			synctest.Wait()
		case "typo":
			s := w.settings()
			s.WorkerTags = []string{"wroker"}
			w.dog.Set(s)
			w.pass(time.Second)
			w.dog.Set(w.settings())
			synctest.Wait()
			delete(seen.last, agency.AlertStuck) // the stuck timeout of an unwatched worker begins again
		case "attach", "detach":
			w.mu.Lock()
			worker.attached = at.what == "attach"
			w.mu.Unlock()
		default:
			if worker.run.Attempt.State.Final() && at.what != "again" {
				continue
			}
			seen.deeds++
			if at.unseen {
				w.dog.Stop()
			}
			w.change(worker, func() { deeds[at.what](w, worker) })
			if at.unseen {
				w.start()
			}
		}
		if problem := seen.wrong(w, at); problem != "" {
			return problem
		}
	}
	w.mu.Lock()
	worker.attached = false
	w.mu.Unlock()
	w.pass(2 * time.Hour)
	end := step{what: "the end", wait: 2 * time.Hour}
	if problem := seen.wrong(w, end); problem != "" {
		return problem
	}
	return w.settledWrong(worker)
}

// A healthy worker is never alerted, whatever it does: each sign of life comes before its stuck
// timeout.
func TestHealthyHistories(t *testing.T) {
	t.Parallel()
	// The longest inactivity that may follow each deed.
	leaves := map[string]time.Duration{
		"says": 3 * poll, "hears": 3 * poll, "writes": 3 * poll, "works": 3 * poll, "tool": stall, "model": stall, "background": stall,
		"busy": 0, "quiet": 40 * time.Minute,
	}
	names := []string{}
	for name := range leaves {
		names = append(names, name)
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		what := rapid.SampledFrom(names).Draw(t, "what")
		longest := leaves[what]
		if what == "busy" {
			longest = 3 * time.Hour // of work
		}
		return step{what: what, wait: time.Duration(rapid.Int64Range(0, int64(longest)-1).Draw(t, "for"))}
	}), 1, 25)
	rapid.Check(t, func(rt *rapid.T) {
		history, restarts := steps.Draw(rt, "history"), rapid.Bool().Draw(rt, "restarts")
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			worker := w.add("a")
			for _, at := range history {
				w.change(worker, func() { healthy(worker, at.what) })
				w.pass(at.wait)
				if restarts {
					w.restart()
				}
				if kinds := w.kinds(); len(kinds) > 0 {
					problem = fmt.Sprintf("%q in %s", kinds, at)
					return
				}
			}
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// healthy lets a worker do a deed, and then stay inactive as long as is usual for it.
func healthy(worker *worker, what string) {
	s := &worker.run.Attempt.AgentState
	s.Turn, s.Tools, s.Background, s.QuietUntil = agency.TurnUnknown, nil, 0, time.Time{}
	if worker.busy {
		worker.activity.CPU += time.Since(worker.begun)
		worker.busy = false
	}
	now := time.Now()
	switch what {
	case "says":
		worker.output = now
	case "writes":
		worker.activity.FilesAt = now
		s.HeardAt = now
	case "works":
		works(&worker.run)
	case "tool":
		begins(&worker.run, "1")
	case "background":
		s.Background, s.HeardAt = 1, now
	case "model":
		begins(&worker.run)
	case "busy":
		worker.busy, worker.begun, worker.output = true, now, now
	case "quiet":
		s.QuietUntil, s.HeardAt = now.Add(40*time.Minute), now
	default:
		s.HeardAt = now
	}
}
