package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/supervisor"
)

func (o runOperations) takeSnapshot(ctx context.Context, req api.RunRequest) (api.TakeSnapshotResponse, error) {
	r, saved, err := o.sup.SnapshotRun(ctx, req.Run)
	if err != nil {
		return api.TakeSnapshotResponse{}, err
	}
	return api.TakeSnapshotResponse{RunID: r.ID, Snapshot: saved}, nil
}

func (o runOperations) listSnapshots(ctx context.Context, req api.RunRequest) (api.ListSnapshotsResponse, error) {
	r, snapshots, err := o.sup.Work.List(ctx, req.Run)
	if err != nil {
		return api.ListSnapshotsResponse{}, err
	}
	return api.ListSnapshotsResponse{RunID: r.ID, Snapshots: snapshots}, nil
}

func (o runOperations) showSnapshot(ctx context.Context, req api.SnapshotRequest) (api.ShowSnapshotResponse, error) {
	r, found, changes, err := o.sup.Work.Show(ctx, req.Run, req.Number)
	if err != nil {
		return api.ShowSnapshotResponse{}, err
	}
	return api.ShowSnapshotResponse{Snapshot: *found, BaseCommit: r.Commit, Changes: changes}, nil
}

func (o runOperations) restoreSnapshot(ctx context.Context, req api.RestoreSnapshotRequest) (api.RestoreSnapshotResponse, error) {
	found, branch, err := o.sup.Work.Restore(ctx, req.Run, req.Number, req.Branch)
	if err != nil {
		return api.RestoreSnapshotResponse{}, err
	}
	return api.RestoreSnapshotResponse{Snapshot: *found, Branch: branch}, nil
}

func (o runOperations) collectRuns(ctx context.Context, req api.CollectRunsRequest) (api.CollectRunsResponse, error) {
	states := make([]agency.State, 0, len(req.States))
	for _, word := range req.States {
		state := agency.State(word)
		if word == agency.Killed.String() {
			state = agency.Killed
		}
		if !state.Final() {
			return api.CollectRunsResponse{}, agency.Errorf(agency.CodeUsage, "%q is not a state that gc could remove", word).
				WithHint("one of: completed, failed, stopped")
		}
		states = append(states, state)
	}
	age, err := api.Milliseconds("older_than_ms", req.OlderThanMS)
	if err != nil {
		return api.CollectRunsResponse{}, err
	}
	found, err := o.sup.Collect(ctx, supervisor.CollectRequest{
		OlderThan: age, States: states, Apply: req.Apply, Branches: req.DeleteBranches,
	})
	if err != nil {
		return api.CollectRunsResponse{}, err
	}
	resp := api.CollectRunsResponse{Runs: make([]api.CollectedRun, 0, len(found)), Standbys: o.sup.Standbys.List()}
	if req.Apply {
		o.sup.Standbys.Clear(ctx)
	}
	if resp.CheckLogs, resp.CheckLogBytes, err = o.verifier.Collect(ctx, age, req.Apply); err != nil {
		return api.CollectRunsResponse{}, err
	}
	for i := range found {
		c := &found[i]
		resp.Runs = append(resp.Runs, api.CollectedRun{
			RunID: c.Run.ID, Ref: c.Run.Ref(), State: c.Run.Attempt.State, Status: o.sup.Observer.Derive(&c.Run).Label, Repo: c.Run.Repo.Root, Removable: c.Removable, Reason: c.Reason, Bytes: c.Bytes,
		})
	}
	return resp, nil
}

func (o runOperations) listStandbys(context.Context, api.Empty) (api.ListStandbysResponse, error) {
	return api.ListStandbysResponse{Standbys: o.sup.Standbys.List()}, nil
}
