package daemon

import (
	"context"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/killpoint"
	"agency/internal/lander"
	"agency/internal/plain"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// forgeOperations serve the operations on remotes and pull requests.
type forgeOperations struct {
	sup    *supervisor.Supervisor
	lander *lander.Lander
	store  *sqlite.Store
}

func (o forgeOperations) planPush(ctx context.Context, req api.PlanPushRequest) (api.PlanPushResponse, error) {
	var p *lander.Push
	var err error
	switch {
	case (req.Run == "") == (req.Landing == ""), req.Landing != "" && req.Branch != "":
		err = agency.Errorf(agency.CodeUsage, "a push takes a run, or the id of a landing without a branch")
	case req.Landing != "":
		p, err = o.lander.Pushes.PlanTarget(ctx, req.Landing, req.Remote)
	default:
		p, err = o.lander.Pushes.Plan(ctx, req.Run, req.Remote, req.Branch)
	}
	if err != nil {
		return api.PlanPushResponse{}, err
	}
	return api.PlanPushResponse{
		Run: runResponse(o.sup, p.Run).Run, Place: api.Place(p.Place), Branch: p.Branch, Commit: p.Commit, Known: p.Known, Rewrite: p.Rewrite,
	}, nil
}

func (o forgeOperations) recordPush(ctx context.Context, req api.RecordPushRequest) (api.PushResponse, error) {
	r, err := o.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.PushResponse{}, err
	}
	p := agency.Push{RunID: r.ID, URL: plain.SafeURL(req.URL), Branch: req.Branch, Commit: req.Commit, Created: req.Created, Done: req.Done}
	err = o.store.RecordPush(ctx, &p)
	if req.Done {
		killpoint.At("push.recorded")
	}
	return api.PushResponse{Push: p}, err
}

func (o forgeOperations) planPR(ctx context.Context, req api.PlanPRRequest) (api.PlanPRResponse, error) {
	r, err := o.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.PlanPRResponse{}, err
	}
	checks, err := o.store.ChecksOf(ctx, r.ID)
	if err != nil {
		return api.PlanPRResponse{}, err
	}
	p, err := o.lander.Pushes.PlanPR(ctx, string(r.ID), req.Remote, req.Base, checks)
	if err != nil {
		return api.PlanPRResponse{}, err
	}
	return api.PlanPRResponse{
		Run: runResponse(o.sup, p.Run).Run, Place: api.Place(p.Place), Kind: p.Kind, Method: p.Method, Branch: p.Branch, Base: p.Base,
		Title: p.Title, Body: p.Body,
	}, nil
}

func (o forgeOperations) recordPR(ctx context.Context, req api.RecordPRRequest) (api.RunResponse, error) {
	pr := agency.PullRequest{
		Forge: req.Forge, Number: req.Number, URL: plain.SafeURL(req.URL), State: req.State, Branch: req.Branch, Base: req.Base,
		Commit: req.Commit, Checks: req.Checks, Review: req.Review,
	}
	states := []agency.PRState{agency.PROpen, agency.PRDraft, agency.PRMerged, agency.PRClosed}
	if pr.Number < 1 || !slices.Contains(states, pr.State) || !slices.Contains(agency.ForgeKinds(), pr.Forge) {
		return api.RunResponse{}, agency.Errorf(agency.CodeUsage, "a pull request has a forge, a number and a state")
	}
	r, err := o.lander.Pushes.RecordPR(ctx, req.Run, &pr)
	if err != nil {
		return api.RunResponse{}, err
	}
	return runResponse(o.sup, r), nil
}
