package lander_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/lander"
)

func (r *record) Comments(context.Context, agency.RunID) ([]agency.LineComment, error) {
	return slices.DeleteFunc(slices.Clone(r.comments), func(c agency.LineComment) bool { return c.State == agency.CommentDiscarded }), nil
}

func (r *record) AddComments(_ context.Context, _ agency.RunID, comments []agency.LineComment) error {
	for i := range comments {
		comments[i].Number, comments[i].State = len(r.comments)+1, agency.CommentOpen
		r.comments = append(r.comments, comments[i])
	}
	return nil
}

func (r *record) MoveComments(_ context.Context, _ agency.RunID, numbers []int, from []agency.CommentState, to agency.CommentState) ([]agency.LineComment, error) {
	moved := []agency.LineComment{}
	for i := range r.comments {
		if c := &r.comments[i]; slices.Contains(numbers, c.Number) && slices.Contains(from, c.State) {
			c.State = to
			moved = append(moved, *c)
		}
	}
	return moved, nil
}

func (r *record) MarkReviewed(context.Context, agency.RunID, []agency.ReviewedFile, bool) error {
	return nil
}

func (r *record) Reviewed(context.Context, agency.RunID) ([]agency.ReviewedFile, error) {
	return nil, nil
}

// A message that was refused leaves its comments to be sent; one that may have been typed, or is
// still in the input box, is not typed again unless the user says so.
func TestSendComments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.rec.run.Attempt.State = agency.Running
	b.write(b.worktree, "a.txt", "mine\n")
	req := lander.Request{Ref: "work"}
	if _, _, err := b.lander.Comments.Add(t.Context(), req, []lander.Remark{{File: "a.txt", Line: 1, Text: "why?"}}); err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, step := range []struct {
		name     string
		delivery agency.Delivery
		err      error
		again    bool
		typed    int // messages, after the step
		state    agency.CommentState
	}{
		{name: "refused", err: agency.Errorf(agency.CodeInputRefused, "a dialog"), typed: 1, state: agency.CommentOpen},
		{name: "cut off", err: agency.TypedPerhaps(errors.New("no answer")), typed: 2, state: agency.CommentSending},
		{name: "not again by itself", typed: 2, state: agency.CommentSending},
		{name: "left in the box", delivery: agency.Delivery{Effect: agency.EffectComposer}, again: true, typed: 3, state: agency.CommentSending},
		{name: "refused again", err: agency.Errorf(agency.CodeInputRefused, "a dialog"), again: true, typed: 4, state: agency.CommentSending},
		{name: "sent", delivery: agency.Delivery{Confirmed: true}, again: true, typed: 5, state: agency.CommentSent},
		{name: "nothing to send", again: true, typed: 5, state: agency.CommentSent},
	} {
		b.lander.Send = func(_ context.Context, _ agency.RunID, text string) (agency.Delivery, error) {
			typed++
			if !strings.Contains(text, "a.txt:1\n> mine\nwhy?\n") {
				t.Errorf("%s: %q", step.name, text)
			}
			return step.delivery, step.err
		}
		_, _, _, err := b.lander.Comments.Deliver(t.Context(), req, step.again)
		if failed := err != nil; failed != (step.state != agency.CommentSent && step.delivery.Effect == "" || step.name == "nothing to send") {
			t.Errorf("%s: %v", step.name, err)
		}
		if typed != step.typed || b.rec.comments[0].State != step.state {
			t.Errorf("%s: %d messages, the comment is %s", step.name, typed, b.rec.comments[0].State)
		}
	}
}

// A refused message takes back only what was not sent before: an earlier message may have brought
// the other comments to the agent.
func TestSendCommentsAgainIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.rec.run.Attempt.State = agency.Running
	b.write(b.worktree, "a.txt", "mine\n")
	req := lander.Request{Ref: "work"}
	for _, failure := range []error{agency.TypedPerhaps(errors.New("no answer")), agency.Errorf(agency.CodeInputRefused, "a dialog")} {
		if _, _, err := b.lander.Comments.Add(t.Context(), req, []lander.Remark{{File: "a.txt", Line: 1, Text: "why?"}}); err != nil {
			t.Fatal(err)
		}
		b.lander.Send = func(context.Context, agency.RunID, string) (agency.Delivery, error) {
			return agency.Delivery{}, failure
		}
		if _, _, _, err := b.lander.Comments.Deliver(t.Context(), req, true); !errors.Is(err, failure) {
			t.Error(err)
		}
	}
	if first, second := b.rec.comments[0].State, b.rec.comments[1].State; first != agency.CommentSending || second != agency.CommentOpen {
		t.Errorf("the comment of the message without an answer is %s, the other one %s", first, second)
	}
}

// What an agent wrote into names and lines reaches no terminal raw.
func TestCommentOnHostileFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(b.worktree, "x\x1b[31m\ny.txt", "a\x1b[201~b\n")
	comments, _, err := b.lander.Comments.Add(t.Context(), lander.Request{Ref: "work"}, []lander.Remark{{File: "x[31m\ny.txt", Line: 1, Text: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := lander.CommentMessage(comments); strings.Contains(text, "\x1b") || !strings.Contains(text, "\nx[31m y.txt:1\n> a[201~b\nno\n") {
		t.Errorf("%q", text)
	}
	if _, _, err = b.lander.Comments.Add(t.Context(), lander.Request{Ref: "work"}, []lander.Remark{{File: "a\x1b.txt", Line: 1, Text: "no"}}); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
}
