package supervisor

import (
	"context"
	"slices"

	"agency"
)

// useLimits sets how the limits of an attempt are enforced and which it reached, and returns an
// event for each that it reached for the first time.
func useLimits(a *agency.Attempt, use *agency.LimitUse) []agency.EventDraft {
	if use == nil {
		return nil
	}
	var before []agency.ReachedLimit
	if a.Limits != nil {
		before = a.Limits.Reached
	}
	var drafts []agency.EventDraft
	for _, r := range use.Reached {
		if !slices.ContainsFunc(before, func(old agency.ReachedLimit) bool { return old.Limit == r.Limit }) {
			drafts = append(drafts, agency.EventDraft{Type: agency.LimitReached, Data: r})
		}
	}
	now := *use
	a.Limits = &now
	return drafts
}

// recordLimits records which limits a live attempt has reached.
func (s *settler) recordLimits(ctx context.Context, id agency.RunID, attempt int, use *agency.LimitUse) error {
	r, err := s.store.Run(ctx, id)
	if err != nil || r.Attempt.Number != attempt || r.Attempt.Limits != nil && slices.Equal(r.Attempt.Limits.Reached, use.Reached) {
		return err
	}
	_, err = s.store.fact(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		if a := &r.Attempt; a.Number == attempt && !a.State.Final() {
			return useLimits(a, use), nil
		}
		return nil, nil
	})
	return err
}
