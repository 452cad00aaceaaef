package sqlite_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/sqlite"
)

func newNotice(id string) *agency.Notice {
	return &agency.Notice{
		ID: id, Kind: "worker.error", Title: "fix-login failed", Body: "exit 1\n<b>", RunID: "r_1", RunName: "fix-login", Repo: "/src",
		Tags: []string{"worker"}, Payload: json.RawMessage(`{"attempt":1}`), At: epoch,
	}
}

func addNotice(t *testing.T, s *sqlite.Store, id string, due time.Time, channels ...string) {
	t.Helper()
	if err := s.AddDispatches(context.Background(), newNotice(id), channels, due); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, s *sqlite.Store, channel string, now time.Time) *agency.Dispatch {
	t.Helper()
	d, err := s.NextDispatch(context.Background(), channel, now, now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func record(t *testing.T, s *sqlite.Store, d *agency.Dispatch) {
	t.Helper()
	if err := s.RecordDispatch(context.Background(), d); err != nil {
		t.Fatal(err)
	}
}

func eventTypes(t *testing.T, s *sqlite.Store) []agency.EventType {
	t.Helper()
	events, err := s.Events(context.Background(), 0, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	types := []agency.EventType{}
	for i := range events {
		types = append(types, events[i].Type)
	}
	return types
}

// A notice goes through its channels one by one, and each outcome is written once.
func TestOutbox(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if d := next(t, s, "desk", epoch); d != nil {
		t.Errorf("an empty outbox has %+v", d)
	}
	addNotice(t, s, "n1", epoch, "desk", "hook")
	addNotice(t, s, "n1", epoch.Add(time.Hour), "desk")
	want := &agency.Dispatch{Notice: *newNotice("n1"), Channel: "desk", DueAt: epoch}
	d := next(t, s, "desk", epoch)
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	d.Tries, d.FailedAt, d.Error, d.DueAt = 1, new(epoch.Add(time.Second)), "exit 1", epoch.Add(time.Minute)
	record(t, s, d)
	if diff := cmp.Diff(d, next(t, s, "desk", epoch)); diff != "" {
		t.Errorf("after a failure -want +got:\n%s", diff)
	}
	d.Tries, d.SentAt = 2, new(epoch.Add(time.Minute))
	record(t, s, d)
	if again := next(t, s, "desk", epoch); again != nil {
		t.Errorf("what was sent is due again: %+v", again)
	}
	late := *d
	late.SentAt, late.DeadAt = nil, &epoch
	record(t, s, &late)

	dead := next(t, s, "hook", epoch)
	dead.Tries, dead.FailedAt, dead.Error, dead.DeadAt = 12, &epoch, "no answer", &epoch
	record(t, s, dead)
	all, err := s.Dispatches(context.Background(), "n1")
	if diff := cmp.Diff([]agency.Dispatch{*d, *dead}, all); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]agency.EventType{agency.NoticeSent, agency.NoticeDead}, eventTypes(t, s)); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

// Among due notices the untried go first, then the oldest; a notice that is not due waits.
func TestOutboxOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	addNotice(t, s, "later", epoch.Add(time.Hour), "desk")
	addNotice(t, s, "failing", epoch.Add(-time.Hour), "desk")
	d := next(t, s, "desk", epoch)
	d.Tries = 1
	record(t, s, d)
	addNotice(t, s, "first", epoch, "desk")
	addNotice(t, s, "second", epoch.Add(-time.Second), "desk")
	got := []string{}
	for range 4 {
		d := next(t, s, "desk", epoch)
		got = append(got, d.Notice.ID)
		d.SentAt = &epoch
		record(t, s, d)
	}
	if diff := cmp.Diff([]string{"first", "second", "failing", "later"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Removed channels get nothing more, and old settled notices are deleted.
func TestTidyOutbox(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := context.Background()
	addNotice(t, s, "old", epoch, "desk")
	d := next(t, s, "desk", epoch)
	d.SentAt = new(epoch.Add(-time.Second))
	record(t, s, d)
	addNotice(t, s, "n1", epoch, "desk", "gone")
	if err := s.TidyOutbox(ctx, []string{"desk"}, epoch.Add(time.Hour), epoch); err != nil {
		t.Fatal(err)
	}
	states, err := s.ChannelStates(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []agency.ChannelState{
		{Channel: "desk", Waiting: 1, DueAt: &epoch},
		{Channel: "gone", Dead: 1, FailedAt: new(epoch.Add(time.Hour)), Error: "the channel is no longer configured"},
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	dead, err := s.DeadDispatches(ctx, 10)
	if err != nil || len(dead) != 1 || dead[0].Channel != "gone" || dead[0].Notice.ID != "n1" {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	if diff := cmp.Diff([]agency.EventType{agency.NoticeSent, agency.NoticeDead}, eventTypes(t, s)); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

// A delayed notice is replaced by a later one of the same alert; one that is due, or being sent, is
// not.
func TestNotifiedAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	morning := epoch.Add(time.Hour)
	addNotice(t, s, "a_1-1", epoch, "desk", "hook")
	d := next(t, s, "desk", epoch)
	d.DueAt = morning
	record(t, s, d)
	addNotice(t, s, "a_2-1", morning, "desk")
	addNotice(t, s, "a_1-2", epoch.Add(time.Minute), "desk", "hook")
	addNotice(t, s, "a_1-2", epoch.Add(time.Minute), "desk", "hook")
	for _, tt := range []struct {
		channel string
		want    []string
	}{{"desk", []string{"a_1-2", "a_2-1"}}, {"hook", []string{"a_1-1", "a_1-2"}}} {
		got := []string{}
		for d := next(t, s, tt.channel, morning); d != nil; d = next(t, s, tt.channel, morning) {
			got = append(got, d.Notice.ID)
			d.SentAt = &morning
			record(t, s, d)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.channel, diff)
		}
	}
}

// Releasing delayed notices makes them due earlier, never later.
func TestReleaseDispatches(t *testing.T) {
	t.Parallel()
	s := setup(t)
	addNotice(t, s, "n1", epoch.Add(time.Hour), "desk", "hook", "bell")
	addNotice(t, s, "n2", epoch, "due")
	d := next(t, s, "hook", epoch)
	d.Tries, d.FailedAt, d.DueAt = 1, &epoch, epoch.Add(time.Hour)
	record(t, s, d)
	instead := map[string]time.Time{"desk": epoch, "hook": epoch.Add(time.Minute), "bell": epoch.Add(2 * time.Hour)}
	err := s.ReleaseDispatches(t.Context(), epoch, func(d *agency.Dispatch) time.Time {
		if at, later := instead[d.Channel]; later {
			return at
		}
		t.Errorf("%s was due", d.Channel)
		return epoch
	})
	if err != nil {
		t.Fatal(err)
	}
	instead["bell"], instead["due"] = epoch.Add(time.Hour), epoch
	for channel, want := range instead {
		if d := next(t, s, channel, epoch); !d.DueAt.Equal(want) {
			t.Errorf("%s: due at %s, want %s", channel, d.DueAt, want)
		}
	}
}

// A notice whose time is impossibly far ahead is due, and keeps its turn.
func TestPutOffForEver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	addNotice(t, s, "ahead", epoch.Add(365*24*time.Hour), "desk")
	addNotice(t, s, "soon", epoch.Add(time.Minute), "desk")
	if d := next(t, s, "desk", epoch); d.Notice.ID != "ahead" {
		t.Errorf("got %s", d.Notice.ID)
	}
}

func TestChannelStates(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i, at := range []time.Duration{time.Minute, time.Hour} {
		addNotice(t, s, string(rune('a'+i)), epoch, "desk")
		d := next(t, s, "desk", epoch)
		d.Tries, d.FailedAt, d.Error, d.SentAt = 2, new(epoch.Add(-at)), at.String(), new(epoch.Add(at))
		record(t, s, d)
	}
	addNotice(t, s, "c", epoch.Add(time.Hour), "desk")
	addNotice(t, s, "d", epoch.Add(time.Minute), "desk")
	states, err := s.ChannelStates(context.Background())
	want := []agency.ChannelState{{
		Channel: "desk", Waiting: 2, DueAt: new(epoch.Add(time.Minute)), SentAt: new(epoch.Add(time.Hour)),
		FailedAt: new(epoch.Add(-time.Minute)), Error: "1m0s",
	}}
	if diff := cmp.Diff(want, states); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}
