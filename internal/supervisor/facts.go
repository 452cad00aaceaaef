package supervisor

import (
	"context"

	"agency"
	"agency/internal/status"
)

// Ended says that no attempt of a run goes on. A run that was never made has ended.
func (q *Query) Ended(ctx context.Context, id agency.RunID) (bool, error) {
	r, err := q.store.Run(ctx, id)
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return true, nil
	}
	return err == nil && r.Attempt.State.Final(), err
}

// Result are what a run came to, as far as git, its agent's word and its agent's usage tell. A worktree that is gone leaves what
// is on the branch. A run that was never made is an empty result.
func (q *Query) Result(ctx context.Context, id agency.RunID) (result agency.AgentResult, err error) {
	r, err := q.store.Run(ctx, id)
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return result, nil
	}
	if err != nil {
		return result, err
	}
	result.Branch = r.Branch
	q.observer.Derive(r)
	attempts, err := q.store.Attempts(ctx, id)
	if err != nil {
		return result, err
	}
	for i := range attempts {
		if attempts[i].Number == r.Attempt.Number {
			attempts[i] = r.Attempt
		}
	}
	result.Usage = status.UsageOf(attempts)
	if word := r.Attempt.OwnWord(); word != nil {
		result.Tests = word.HowToTest
	}
	stat, dirty, err := q.work.diffStat(ctx, r)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	if err != nil {
		result.Problem = agency.AsError(err).Message
		return result, nil
	}
	result.Commits, result.Files, result.Added, result.Deleted, result.Dirty = stat.Commits, stat.Files, stat.Added, stat.Deleted, dirty
	result.Nested = stat.Nested
	return result, nil
}
