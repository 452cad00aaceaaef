package sqlite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// A timer is stored with its counters; another one of its name replaces it and nothing else; its
// end has an event.
func TestTimers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := setup(t), newRun(1)
	create(t, s, r)
	before, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1_700_000_000_000).UTC()
	first := &agency.Timer{Name: "boss", RunID: r.ID, Owner: "user", Message: "check", Interval: 30 * time.Second, StartedAt: at, NextAt: at.Add(30 * time.Second)}
	if replaced, err := s.PutTimer(ctx, first); err != nil || replaced {
		t.Fatal(replaced, err)
	}
	later := at.Add(time.Minute)
	done := func(timer *agency.Timer) {
		timer.NextAt, timer.TickedAt, timer.Ticks, timer.Sent, timer.Skipped, timer.Failed, timer.Outcome = later, &at, 6, 3, 2, 1, "sent"
	}
	if found, err := s.ChangeTimer(ctx, first.Seq, done); err != nil || !found {
		t.Fatal(found, err)
	}
	done(first)
	timers, err := s.Timers(ctx)
	if diff := cmp.Diff([]agency.Timer{*first}, timers); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	second := &agency.Timer{Name: "boss", RunID: r.ID, Owner: "user", Message: "look", Interval: time.Minute, StartedAt: later, NextAt: later}
	if replaced, err := s.PutTimer(ctx, second); err != nil || !replaced || second.Seq == first.Seq {
		t.Fatal(replaced, second.Seq, err)
	}
	if found, err := s.ChangeTimer(ctx, first.Seq, func(*agency.Timer) { t.Error("it is gone") }); err != nil || found {
		t.Error(found, err)
	}
	for range 2 { // the second end makes no event
		if _, err := s.ChangeTimer(ctx, second.Seq, func(timer *agency.Timer) { timer.StoppedAt, timer.StopReason = &later, "it ended" }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteTimer(ctx, &agency.Timer{Seq: second.Seq, Name: "boss", RunID: r.ID, StoppedAt: &later}); err != nil {
		t.Fatal(err)
	}
	if timers, err = s.Timers(ctx); err != nil || len(timers) != 0 {
		t.Error(timers, err)
	}
	events, err := s.Events(ctx, before, r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := []agency.EventType{}
	for i := range events {
		got = append(got, events[i].Type)
	}
	if diff := cmp.Diff([]agency.EventType{agency.TimerStarted, agency.TimerStarted, agency.TimerStopped}, got); diff != "" {
		t.Error(diff)
	}
}

// A timer can be replaced by its owner, by the user, and once it has ended; another run cannot
// replace it.
func TestTimerOfAnotherRun(t *testing.T) {
	t.Parallel()
	s, mine, theirs := setup(t), newRun(1), newRun(2)
	create(t, s, mine, theirs)
	put := func(owner string) (bool, error) {
		return s.PutTimer(t.Context(), &agency.Timer{Name: "boss", RunID: mine.ID, Owner: owner, Message: "check", Interval: time.Minute, StartedAt: epoch, NextAt: epoch})
	}
	for _, tt := range []struct {
		owner   string
		refused bool
	}{
		{string(mine.ID), false}, {string(mine.ID), false}, {string(theirs.ID), true}, {agency.User, false}, {string(mine.ID), true}, {agency.User, false},
	} {
		_, err := put(tt.owner)
		if tt.refused {
			if e := wantCode(t, err, agency.CodeNameExists); !strings.Contains(e.Message, `"boss"`) {
				t.Error(e.Message)
			}
		} else if err != nil {
			t.Errorf("%s: %v", tt.owner, err)
		}
	}
	timers, err := s.Timers(t.Context())
	if err != nil || len(timers) != 1 || timers[0].Owner != agency.User {
		t.Fatalf("%+v, %v", timers, err)
	}
	if _, err := s.ChangeTimer(t.Context(), timers[0].Seq, func(timer *agency.Timer) { timer.StoppedAt, timer.StopReason = &epoch, "over" }); err != nil {
		t.Fatal(err)
	}
	if replaced, err := put(string(mine.ID)); err != nil || !replaced {
		t.Errorf("one that is over: %v, %v", replaced, err)
	}
}
