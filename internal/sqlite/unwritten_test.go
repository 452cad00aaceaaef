package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/sqlite"
	"agency/test/fixture"
)

// setRoom decides whether the database may grow from now on.
func setRoom(s *sqlite.Store, yes bool) error {
	pages := 1
	if yes {
		pages = 1 << 30
	}
	_, err := s.Writer().ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
	return err
}

// large is large enough that the database must grow for it.
var large = strings.Repeat("a", 16<<10)

func asked(at time.Time) func(*agency.Run) ([]agency.EventDraft, error) {
	return func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt.StopRequestedAt = &at
		return []agency.EventDraft{{Type: agency.AttemptStopping, Data: map[string]string{"note": large}}}, nil
	}
}

func ended(r *agency.Run) ([]agency.EventDraft, error) {
	if r.Attempt.State.Final() {
		return nil, nil
	}
	r.Attempt.State, r.Attempt.EndedAt = agency.Failed, new(epoch)
	if r.Attempt.StopRequestedAt != nil {
		r.Attempt.State = agency.Killed
	}
	return []agency.EventDraft{{Type: agency.AttemptEnded, Data: map[string]string{"note": large}}}, nil
}

// Readers see changes that the disk does not take, one fact on top of another; once the disk has
// room, the record contains them once.
func TestRecordFact(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), setup(t)
	r := newRun(1)
	create(t, s, r, newRun(2))
	if err := setRoom(s, false); err != nil {
		t.Fatal(err)
	}
	changed := s.Changed()
	if _, err := s.RecordFact(ctx, r.ID, asked(epoch)); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got, err := s.RecordFact(ctx, r.ID, ended); err != nil || !got.Unrecorded || got.Attempt.State != agency.Killed {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := s.ChangeRun(ctx, r.ID, asked(epoch)); !agency.IsCode(err, agency.CodeDBError) {
		t.Errorf("another change: %v", err)
	}
	if err := s.WriteFacts(ctx); err != nil {
		t.Error(err)
	}
	one, err1 := s.Run(ctx, r.ID)
	matched, err2 := s.MatchRuns(ctx, r.Handle, 0)
	all, err3 := s.Runs(ctx, agency.Filter{})
	live, err4 := s.Runs(ctx, agency.Filter{Live: true})
	attempts, err5 := s.Attempts(ctx, r.ID)
	for i, got := range []agency.Run{*one, matched[0], all[0], {Attempt: attempts[0], Unrecorded: true}} {
		if got.Attempt.State != agency.Killed || !got.Unrecorded {
			t.Errorf("reader %d gets %+v", i, got.Attempt)
		}
	}
	if len(live) != 1 || live[0].ID == r.ID || err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil {
		t.Errorf("live are %+v; %v %v %v %v %v", live, err1, err2, err3, err4, err5)
	}
	if err := errors.Join(setRoom(s, true), s.WriteFacts(ctx)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Run(ctx, r.ID); err != nil || got.Unrecorded || got.Attempt.State != agency.Killed {
		t.Errorf("at last %+v, %v", got, err)
	}
}

// For any order of facts, other changes, new attempts and tries to write, on a disk that fills and
// has room again: the record ends in the same state as on a disk with room, except for refused
// changes, and has every event once and in order.
func TestFactsComeToTheSame(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ctx := context.Background()
		path := filepath.Join(dir, fmt.Sprint(n))
		fixture.Database(t, path)
		s, err := sqlite.Open(ctx, path, new(clock).now)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		r := newRun(1)
		if err := s.CreateRun(ctx, r, agency.Creation{Spec: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		want, notes, room := r.Attempt, []string{}, true
		for i, do := range rapid.SliceOf(rapid.SampledFrom([]string{"fill", "free", "fact", "change", "attempt", "write"})).Draw(t, "do") {
			number, note := want.Number, fmt.Sprint(i, large)
			change := func(r *agency.Run) ([]agency.EventDraft, error) {
				if r.Attempt.Error != want.Error || r.Attempt.Number != number {
					t.Errorf("%d is changed in attempt %d with %.3q, want %d with %.3q", i, r.Attempt.Number, r.Attempt.Error, number, want.Error)
				}
				if do == "attempt" {
					r.Attempt = agency.Attempt{Number: number + 1, State: agency.Queued}
				}
				r.Attempt.Error = note
				return []agency.EventDraft{{Type: agency.RunStep, Data: map[string]string{"note": note}}}, nil
			}
			switch do {
			case "fill", "free":
				room = do == "free"
				err = setRoom(s, room)
			case "write":
				err = s.WriteFacts(ctx)
			case "fact":
				_, err = s.RecordFact(ctx, r.ID, change)
			default:
				if _, err = s.ChangeRun(ctx, r.ID, change); !room && err != nil {
					continue // refused
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if do == "fact" || do == "change" || do == "attempt" {
				want.Error, notes = note, append(notes, fmt.Sprintf(`{"note":%q}`, note))
			}
			if do == "attempt" {
				want.Number++
			}
		}
		if err := errors.Join(setRoom(s, true), s.WriteFacts(ctx)); err != nil {
			t.Fatal(err)
		}
		comesTo(t, s, r.ID, &want, notes)
	})
}

// comesTo checks that the record has the last change of a run, and every event once and in order.
func comesTo(t *rapid.T, s *sqlite.Store, id agency.RunID, want *agency.Attempt, notes []string) {
	ctx := context.Background()
	got, err := s.Run(ctx, id)
	events, err2 := s.Events(ctx, 0, id, 0)
	if err != nil || err2 != nil || got.Unrecorded || got.Attempt.Error != want.Error || got.Attempt.Number != want.Number {
		t.Fatalf("it comes to attempt %d with %.3q, want %d with %.3q: %v %v", got.Attempt.Number, got.Attempt.Error, want.Number, want.Error, err, err2)
	}
	heard := []string{}
	for i := range events {
		heard = append(heard, string(events[i].Data))
	}
	if !slices.Equal(heard, notes) {
		t.Errorf("notes %.20v, want %.20v", heard, notes)
	}
}
