package watchdog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/api"
	"agency/internal/watchdog"
)

// plan is a session in the record of a world.
type plan struct {
	session agency.Session
	agents  []agency.SessionAgent
	retried bool
	removed bool
}

// play adds a running session.
func (w *record) play(name string, agents ...string) *plan {
	p := &plan{session: agency.Session{ID: agency.SessionID("s_" + name), Name: name, Status: agency.SessionRunning, Dir: "/status/" + name}}
	for i, id := range agents {
		p.agents = append(p.agents, agency.SessionAgent{Session: p.session.ID, Position: i, ID: id, Status: agency.AgentQueued})
	}
	w.mu.Lock()
	w.plans[p.session.ID] = p
	w.mu.Unlock()
	w.turn(agency.SessionTurn{Type: agency.SessionCreated, Session: p.session.ID})
	return p
}

// turn records turns of a session as the record's events do.
func (w *record) turn(turns ...agency.SessionTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append(turns...)
}

// append is turn for a caller that holds the lock.
func (w *record) append(turns ...agency.SessionTurn) {
	for _, t := range turns {
		w.seq++
		w.turns = append(w.turns, numbered{w.seq, t})
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// numbered is an event about a session.
type numbered struct {
	seq  int64
	turn agency.SessionTurn
}

// pauses pauses a session, or resumes it when why is empty.
func (w *record) pauses(p *plan, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.session.Paused = why
	w.append(agency.SessionTurn{Type: agency.SessionChanged, Session: p.session.ID, Paused: why})
}

// waits lets an agent wait for the user, or no longer when why is empty.
func (w *record) waits(p *plan, agent int, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &p.agents[agent]
	a.Error = why
	w.append(agency.SessionTurn{Type: agency.SessionAgentEvent, Session: p.session.ID, Agent: a.ID, Status: a.Status, Error: why})
}

// fails settles a session with a failure and its report.
func (w *record) fails(p *plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.agents[0].Status, p.agents[0].Error, p.session.Paused = agency.AgentFailed, "exit 3", ""
	p.session.Counts, p.session.Status, p.session.Reported = agency.CountsOf(p.agents), agency.SessionFailed, true
	w.append(agency.SessionTurn{Type: agency.SessionReported, Session: p.session.ID})
}

func (w *record) WatchedSessions(context.Context) ([]agency.SessionID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := []agency.SessionID{}
	for id, p := range w.plans {
		known := slices.ContainsFunc(w.alerts, func(a agency.Alert) bool { return a.Session == id && a.Kind == agency.AlertSessionFailed })
		if !p.removed && (!p.session.Status.Final() || p.session.Status == agency.SessionFailed && !known) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (w *record) Troubled(_ context.Context, id agency.SessionID) (*agency.Session, []agency.SessionAgent, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked++
	if w.unreadable > 0 {
		w.unreadable--
		return nil, nil, false, errors.New("the disk says no")
	}
	p := w.plans[id]
	if p == nil || p.removed {
		return nil, nil, false, agency.Errorf(agency.CodeSessionNotFound, "no session %s", id)
	}
	return new(p.session), slices.Clone(p.agents), p.retried, nil
}

func (w *record) OpenedSeq(context.Context) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.alerts {
		a := &w.alerts[i]
		if a.Session == "" || !a.Open() || a.Kind == agency.AlertSessionFailed {
			continue
		}
		at := slices.IndexFunc(w.turns, func(n numbered) bool { return n.turn.Type == agency.AlertOpened && n.turn.Alert == a.ID })
		return w.turns[at].seq - 1, nil
	}
	return w.seq, nil
}

func (w *record) SessionTurns(_ context.Context, since int64) ([]agency.SessionTurn, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := []agency.SessionTurn{}
	for _, n := range w.turns {
		if n.seq > since {
			turns = append(turns, n.turn)
		}
	}
	return turns, w.seq, nil
}

func (w *record) DeliverSession(_ context.Context, a *agency.Alert, s *agency.Session) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, fmt.Sprintf("%s %s %d", s.Name, a.Kind, a.Level))
	return []string{"user"}, nil
}

// sees acknowledges an alert about a session.
func (w *world) sees(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &w.alerts[i]
	a.AckedAt = new(time.Now())
	w.append(agency.SessionTurn{Type: agency.AlertAcked, Session: a.Session, Alert: a.ID})
}

func (w *world) wantNotified(want ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.notifications(); !slices.Equal(got, want) {
		w.t.Errorf("notified %q, want %q", got, want)
	}
}

func (w *world) wantOpen(n int) {
	w.t.Helper()
	synctest.Wait()
	if got := w.open(); got != n {
		w.t.Errorf("%d alerts are open, want %d", got, n)
	}
}

// A session that agency paused has one alert until it continues, across all restarts; a session
// that its user paused has none, and neither has a running one.
func TestSessionPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.play("night", "one", "two")
		w.pass(time.Hour)
		w.pauses(p, agency.PausedByHand)
		w.pass(time.Hour)
		w.wantNotified()
		w.pauses(p, "")
		w.pauses(p, "agent one failed")
		w.wantNotified("night session.paused 0")
		w.restart()
		w.pauses(p, "agent one failed") // as when its limit is changed
		w.wantNotified("night session.paused 0")
		w.wantOpen(1)
		w.pass(5 * time.Minute)
		w.wantNotified("night session.paused 0", "night session.paused 1")
		w.pauses(p, "")
		w.wantOpen(0)
		w.pass(24 * time.Hour)
		w.pauses(p, "agent one failed")
		w.wantNotified("night session.paused 0", "night session.paused 1", "night session.paused 0")
		w.want(agency.AlertSessionPaused, agency.AlertSessionPaused)
		w.sees(1)
		w.pass(24 * time.Hour)
		w.wantNotified("night session.paused 0", "night session.paused 1", "night session.paused 0")
		w.wantOpen(1)
	})
}

// An alert about a session is recognised by its cause, whether it opened before a restart or its
// cause arose during one.
func TestSessionAcrossRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		waiting, goesOn, removed := w.play("waiting", "one"), w.play("goes-on", "one"), w.play("removed", "one")
		w.waits(waiting, 0, "waiting: no leave")
		w.pauses(goesOn, "agent one failed")
		w.fails(removed)
		w.wantOpen(3)
		w.dog.Stop()
		failed := w.play("failed", "one")
		w.fails(failed)
		w.pauses(goesOn, "")
		removed.removed = true
		w.start()
		w.wantOpen(2)
		if n := len(w.notifications()); n != 4 {
			t.Errorf("notified %q", w.notifications())
		}
		w.restart()
		w.wantOpen(2)
		if n := len(w.notifications()); n != 4 {
			t.Errorf("notified again: %q", w.notifications())
		}
	})
}

// Agents that wait for the same cause make one alert. It ends when none of them waits, and another
// opens when they wait again, however soon.
func TestSessionWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.play("night", "one", "two", "three")
		w.waits(p, 0, "waiting: no leave")
		w.waits(p, 1, "waiting: no leave")
		w.waits(p, 2, "waiting: the results conflict")
		w.wantNotified("night session.waiting 0", "night session.waiting 0")
		w.want(agency.AlertSessionWaiting, agency.AlertSessionWaiting)
		if got := api.AlertText(w.alert(1).Payload); got != "three: waiting: the results conflict" {
			t.Errorf("it says %q", got)
		}
		w.waits(p, 0, "")
		w.waits(p, 0, "waiting: no leave") // in the same moment
		w.waits(p, 2, "")
		w.waits(p, 2, "waiting: the results conflict")
		synctest.Wait()
		if n := len(w.kinds()); n != 3 {
			t.Errorf("%d episodes, want 3: %+v", n, w.alerts)
		}
		w.wantOpen(2)
		for i := range p.agents {
			w.waits(p, i, "")
		}
		w.wantOpen(0)
	})
}

// The alert of a failure contains the report. It ends when the user acknowledges it, retries the
// session or removes it, and does not return.
func TestSessionFailed(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(w *world, p *plan){
		"seen": func(w *world, _ *plan) { w.sees(0) },
		"tried again": func(w *world, p *plan) {
			p.retried = true
			again := w.play("again", "one")
			again.session.RetryOf = p.session.ID
			w.turn(agency.SessionTurn{Type: agency.SessionCreated, Session: again.session.ID})
		},
		"removed": func(w *world, p *plan) {
			p.removed = true
			w.turn(agency.SessionTurn{Type: agency.SessionRemoved, Session: p.session.ID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.play("night", "one", "two")
				w.mu.Lock()
				p.session.Dir = t.TempDir()
				w.mu.Unlock()
				if err := os.WriteFile(p.session.ReportPath(), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				w.pauses(p, "agent one failed")
				w.wantOpen(1)
				w.fails(p)
				w.wantNotified("night session.paused 0", "night session.failed 0")
				w.wantOpen(1)
				var payload map[string]any
				if err := json.Unmarshal(w.alert(1).Payload, &payload); err != nil || payload["report_path"] != p.session.ReportPath() ||
					payload["text"] != "1 failed, 1 queued; one: exit 3" || payload["session_id"] != "s_night" {
					t.Errorf("payload %v, %v", payload, err)
				}
				w.mu.Lock()
				w.alerts = w.alerts[1:]
				w.mu.Unlock()
				over(w, p)
				w.wantOpen(0)
				w.restart()
				w.turn(agency.SessionTurn{Type: agency.SessionReported, Session: p.session.ID})
				w.pass(24 * time.Hour)
				w.wantOpen(0)
				w.wantNotified("night session.paused 0", "night session.failed 0")
			})
		})
	}
}

// A reason that ended and came again is another alert, also when a look failed meanwhile, or no
// daemon ran.
func TestSessionTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			p := w.play("night", "one", "two")
			w.pauses(p, "agent one failed")
			w.waits(p, 1, "waiting: no leave")
			w.wantNotified("night session.paused 0", "night session.waiting 0")
			if stopped {
				w.dog.Stop()
			} else {
				w.mu.Lock()
				w.unreadable = 1
				w.mu.Unlock()
			}
			w.pauses(p, "")
			w.pauses(p, "agent one failed")
			if stopped {
				w.start()
			} else {
				w.pass(poll)
			}
			w.wantNotified("night session.paused 0", "night session.waiting 0", "night session.paused 0")
			w.wantOpen(2)
			w.restart()
			w.wantNotified("night session.paused 0", "night session.waiting 0", "night session.paused 0")
		})
	}
}

// Sessions without events cost nothing, however long they take.
func TestQuietSessionIsNotLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play("night", "one")
		synctest.Wait()
		w.mu.Lock()
		before := w.looked
		w.mu.Unlock()
		w.pass(24 * time.Hour)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.looked != before {
			t.Errorf("looked %d times", w.looked-before)
		}
	})
}

// waitsAgain has the agents of a session continue and wait again, if they wait, and returns how many
// notifications that makes.
func (w *world) waitsAgain(p *plan, reasons map[string]bool) int {
	if !reasons["waiting: no leave"] {
		return 0
	}
	w.mu.Lock()
	why := [2]string{p.agents[0].Error, p.agents[1].Error}
	w.mu.Unlock()
	for i := range why {
		w.waits(p, i, "")
	}
	for i := range why {
		w.waits(p, i, why[i])
	}
	return 1
}

// For any history of sessions and daemons, each episode has one alert, with one notification, which
// is open while the episode lasts.
func TestEpisodesOfSessions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"pause", "other", "hand", "resume", "wait", "more", "go", "again", "missed", "restart"}), 1, 20).Draw(rt, "steps")
		var notified []string
		open, wantNotified, wantOpen := 0, 0, 0
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			p := w.play("night", "one", "two")
			reasons := map[string]bool{}
			for _, step := range steps {
				switch step {
				case "pause":
					w.pauses(p, "agent one failed")
				case "other":
					w.pauses(p, "agent two failed")
				case "hand":
					w.pauses(p, agency.PausedByHand)
				case "resume":
					w.pauses(p, "")
				case "wait":
					w.waits(p, 0, "waiting: no leave")
				case "more":
					w.waits(p, 1, "waiting: no leave")
				case "go":
					w.waits(p, 0, "")
					w.waits(p, 1, "")
				case "again": // in one moment
					wantNotified += w.waitsAgain(p, reasons)
				case "missed": // while no daemon runs
					w.dog.Stop()
					wantNotified += w.waitsAgain(p, reasons)
					w.start()
				case "restart":
					w.restart()
				}
				synctest.Wait()
				now := map[string]bool{}
				for _, c := range watchdog.SessionAlarms(&p.session, p.agents) {
					now[c.Cause] = true
					if !reasons[c.Cause] {
						wantNotified++
					}
				}
				reasons = now
			}
			notified, open, wantOpen = w.notifications(), w.open(), len(reasons)
			w.dog.Stop()
		})
		if len(notified) != wantNotified || open != wantOpen {
			rt.Fatalf("notified %d times, want %d; %d are open, want %d", len(notified), wantNotified, open, wantOpen)
		}
	})
}
