package supervisor

import (
	"context"

	"agency"
)

// Explain returns why a run has its status, with the newest lines of its evidence.
func (q *Query) Explain(ctx context.Context, ref string) (*agency.Run, agency.Explanation, []agency.Evidence, error) {
	r, err := q.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Explanation{}, nil, err
	}
	attempts, err := q.store.Attempts(ctx, r.ID)
	if err != nil {
		return nil, agency.Explanation{}, nil, err
	}
	explanation, evidence := q.observer.Explain(r, attempts)
	return r, explanation, evidence, nil
}
