package supervisor

import (
	"context"

	"agency"
	"agency/internal/status"
)

// Ended reports whether all attempts of a run have ended. A run that was never made has ended.
func (q *Query) Ended(ctx context.Context, id agency.RunID) (bool, error) {
	r, err := q.store.Run(ctx, id)
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return true, nil
	}
	return err == nil && r.Attempt.State.Final(), err
}

// Result returns the outcome of a run, as git, the agent's report and its usage show it. When the
// worktree is gone, it describes the branch. A run that was never made has an empty result. Result
// fails when the system is short of something; then another try can succeed.
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
	if report := r.Attempt.OwnReport(); report != nil {
		result.Tests = report.HowToTest
	}
	stat, dirty, err := q.work.diffStat(ctx, r)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	if agency.Exhausted(err) {
		return result, err
	}
	if err != nil {
		result.Problem = agency.AsError(err).Message
		return result, nil
	}
	result.Commits, result.Files, result.Added, result.Deleted, result.Dirty = stat.Commits, stat.Files, stat.Added, stat.Deleted, dirty
	result.Nested = stat.Nested
	return result, nil
}
