package supervisor

import (
	"testing"
	"time"
)

// state.json of a run at rest is written when more than the heartbeat changed, or the heartbeat in it
// is half a minute old.
func TestStateIsAlmost(t *testing.T) {
	beat := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := func(after time.Duration, change func(*runState)) *runState {
		at, pid := beat.Add(after), 7
		s := &runState{Status: "ACTIVE", PID: &pid, Attempt: 1, LastHeartbeat: &at}
		change(s)
		return s
	}
	nothing := func(*runState) {}
	for _, c := range []struct {
		name     string
		old, now *runState
		want     bool
	}{
		{"a heartbeat", state(0, nothing), state(29*time.Second, nothing), true},
		{"an old heartbeat", state(0, nothing), state(30*time.Second, nothing), false},
		{"a clock set back", state(0, nothing), state(-time.Hour, nothing), false},
		{"stalled", state(0, nothing), state(time.Second, func(s *runState) { s.Status = "STALLED" }), false},
		{"another process", state(0, nothing), state(time.Second, func(s *runState) { *s.PID = 8 }), false},
		{"another attempt", state(0, nothing), state(time.Second, func(s *runState) { s.Attempt = 2 }), false},
		{"no heartbeat", state(0, nothing), state(0, func(s *runState) { s.LastHeartbeat = nil }), false},
		{"nothing written", nil, state(0, nothing), false},
	} {
		if got := c.old.isAlmost(c.now); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
