package sqlite_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// A landing is stored as it was given, is open until it is settled, and is settled once.
func TestLandings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := setup(t), newRun(1)
	create(t, s, r)
	l := &agency.Landing{
		ID: agency.NewLandingID(epoch, [10]byte{}), RunID: r.ID, Target: "main", Method: agency.LandSquash, Source: "aa", TargetOld: "bb",
		Candidate: "cc", Worktree: "/w", State: agency.LandingMoving,
	}
	if err := s.CreateLanding(ctx, l); err != nil {
		t.Fatal(err)
	}
	open, err := s.OpenLandings(ctx)
	if diff := cmp.Diff([]agency.Landing{*l}, open); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	before, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		settled, err := s.SettleLanding(ctx, l.ID, agency.LandingFailed, "the target moved", agency.LandingGivenUp)
		if err != nil || settled.State != agency.LandingFailed || settled.EndedAt == nil || settled.Error != "the target moved" {
			t.Fatal(settled, err)
		}
	}
	events, err := s.Events(ctx, before, r.ID, 0)
	if err != nil || len(events) != 1 || events[0].Type != agency.LandingGivenUp {
		t.Errorf("%v %v", events, err)
	}
	if open, err = s.OpenLandings(ctx); err != nil || len(open) > 0 {
		t.Errorf("%v %v", open, err)
	}
	if all, err := s.Landings(ctx, r.ID); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	if _, err := s.Landing(ctx, "l_none"); !agency.IsCode(err, agency.CodeLandingNotFound) {
		t.Error(err)
	}
}

// Comments are numbered from 1, move from the states that are asked for, and keep their numbers
// when others are discarded.
func TestComments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := setup(t), newRun(1)
	create(t, s, r)
	add := func() agency.LineComment {
		c := []agency.LineComment{{File: "a.go", Side: agency.SideNew, Line: 2, Last: 3, Text: "why?", Quote: "x\ny", Hash: "h", Revision: "t"}}
		if err := s.AddComments(ctx, r.ID, c); err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	first, second := add(), add()
	move := func(number int, from, to agency.CommentState, want int) {
		t.Helper()
		moved, err := s.MoveComments(ctx, r.ID, []int{number}, []agency.CommentState{from}, to)
		if err != nil || len(moved) != want {
			t.Errorf("%v, %v", moved, err)
		}
	}
	move(1, agency.CommentOpen, agency.CommentSending, 1)
	move(1, agency.CommentOpen, agency.CommentSending, 0)
	move(1, agency.CommentSending, agency.CommentSent, 1)
	move(2, agency.CommentOpen, agency.CommentDiscarded, 1)
	all, err := s.Comments(ctx, r.ID)
	if err != nil || len(all) != 1 || all[0].SentAt == nil || all[0].State != agency.CommentSent {
		t.Fatal(all, err)
	}
	all[0].State, all[0].SentAt = first.State, nil
	if diff := cmp.Diff([]agency.LineComment{first}, all); diff != "" {
		t.Error(diff)
	}
	if third := add(); second.Number != 2 || third.Number != 3 {
		t.Error(second.Number, third.Number)
	}
}
