package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"agency"
	"agency/internal/supervisor/keyed"
)

// Records is the record of runs, with the operations on it that several parts of the supervisor
// need.
type Records struct {
	Store

	log   *slog.Logger
	locks keyed.Locks // serialises operations on one run
}

// lock excludes other operations on a run until unlock is called.
func (rs *Records) lock(ctx context.Context, id agency.RunID) (unlock func(), err error) {
	return rs.locks.Lock(ctx, string(id))
}

// fact records what is true of a run's attempt, and logs when the disk does not take it.
func (rs *Records) fact(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	r, err := rs.RecordFact(ctx, id, change)
	if err == nil && r.Unrecorded {
		rs.log.Warn("the disk takes nothing: kept in memory", "run", id, "attempt", r.Attempt.Number, "state", r.Attempt.State)
	}
	return r, err
}

func (rs *Records) checkNameFree(ctx context.Context, name string) error {
	runs, err := rs.MatchRuns(ctx, name, 1)
	if err != nil {
		return err
	}
	if len(runs) == 0 || runs[0].Name != name || runs[0].RemovedAt != nil {
		return nil
	}
	free, err := rs.freeName(ctx, name)
	if err != nil {
		return err
	}
	taken := agency.Errorf(agency.CodeNameExists, "a run named %q exists", name)
	if runs[0].Attempt.State.Final() {
		return taken.WithHint("choose another: --name %s; or remove that run, which has ended: agency rm %s", free, name)
	}
	return taken.WithHint("it is %s: agency show %s; choose another: --name %s", runs[0].Attempt.State, name, free)
}

// freeName returns a name like the given one that no run has.
func (rs *Records) freeName(ctx context.Context, name string) (string, error) {
	for n := 2; ; n++ {
		suffix := fmt.Sprintf("-%d", n)
		free := strings.TrimRight(name[:min(len(name), agency.NameLimit-len(suffix))], "-") + suffix
		runs, err := rs.MatchRuns(ctx, free, 1)
		if err != nil || len(runs) == 0 || runs[0].Name != free || runs[0].RemovedAt != nil {
			return free, err
		}
	}
}

// spec returns the request that a run was made from.
func (rs *Records) spec(ctx context.Context, r *agency.Run) (*agency.Spec, error) {
	data, err := rs.Spec(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	var spec agency.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", r.Ref(), err)
	}
	return &spec, nil
}

// Resolve finds the one run that a reference means: a name, handle, id, or a unique prefix of four
// or more characters.
func (rs *Records) Resolve(ctx context.Context, ref string) (*agency.Run, error) {
	const most = 10
	runs, err := rs.MatchRuns(ctx, ref, most)
	if err != nil {
		return nil, err
	}
	switch {
	case len(runs) == 1:
		return &runs[0], nil
	case len(runs) > 1:
		candidates := make([]string, 0, len(runs))
		for i := range runs {
			candidates = append(candidates, runs[i].Handle)
		}
		return nil, agency.Errorf(agency.CodeRunAmbiguous, "%q could be %s", ref, strings.Join(candidates, ", ")).
			WithDetail("candidates", candidates).WithHint("type more of it")
	}
	return nil, rs.missing(ctx, ref)
}

// Hold finds a run and excludes other operations on it until release is called. The run is as it is
// under the lock.
func (rs *Records) Hold(ctx context.Context, ref string) (r *agency.Run, release func(), err error) {
	if r, err = rs.Resolve(ctx, ref); err != nil {
		return nil, nil, err
	}
	if release, err = rs.lock(ctx, r.ID); err != nil {
		return nil, nil, err
	}
	if r, err = rs.Run(ctx, r.ID); err != nil {
		release()
		return nil, nil, err
	}
	return r, release, nil
}
