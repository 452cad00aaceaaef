package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/lander"
	"agency/internal/policy"
	"agency/internal/session"
	"agency/internal/supervisor"
	"agency/internal/verify"
)

// newLander returns the lander of this daemon.
func (d *Daemon) newLander() *lander.Lander {
	return lander.New(lander.Deps{
		Store: d.store, Runs: d.sup.Records, Marks: d.sup.Marks, Repos: d.sup.Repos, Git: d.git, Status: d.sup.Observer.Derive,
		Remove: func(ctx context.Context, id agency.RunID) error {
			_, err := d.sup.RemoveRun(ctx, supervisor.RemoveRequest{Ref: string(id)})
			return err
		},
		Send: func(ctx context.Context, id agency.RunID, text string) (agency.Delivery, error) {
			_, delivery, err := d.sup.Input.Send(ctx, string(id), text, "")
			return delivery, err
		},
		Parse:    config.ParseProject,
		Settings: func() agency.LandingSettings { return d.active.config().Landing },
		NewID:    func() agency.LandingID { return agency.NewLandingID(d.clock.Now(), [10]byte(randomBytes(10))) },
		Log:      d.Log,
	})
}

// landingOperations serve the operations on landings.
type landingOperations struct {
	sup       *supervisor.Supervisor
	lander    *lander.Lander
	verifier  *verify.Verifier
	policy    *policy.Policy
	untilStop untilStop
	sessions  *session.Landings
}

// passing returns a function that makes the checks of landings: for a request, it returns the
// function that runs a target's checks on the commit that is to land there.
func passing(verifier *verify.Verifier) func(*verify.Request) func(context.Context, agency.Repo, *agency.Landing) error {
	return func(checking *verify.Request) func(context.Context, agency.Repo, *agency.Landing) error {
		return func(ctx context.Context, repo agency.Repo, l *agency.Landing) error {
			return verifier.Pass(ctx, &verify.Subject{
				Run: l.RunID, Repo: repo, Target: l.Target, TargetCommit: l.TargetOld, Source: l.Source, Commit: l.Candidate, Merged: true,
			}, checking)
		}
	}
}

func (o landingOperations) mergeRun(ctx context.Context, req api.MergeRunRequest) (api.MergeRunResponse, error) {
	if (req.Run == "") == (req.Undo == "") {
		return api.MergeRunResponse{}, agency.Errorf(agency.CodeUsage, "a landing takes a run, or with undo the id of a landing")
	}
	if req.Undo != "" {
		return o.merged(o.lander.Undo(ctx, req.Undo))
	}
	method := agency.LandingMethod(req.Method)
	if req.Method != "" && !slices.Contains(agency.LandingMethods(), method) {
		return api.MergeRunResponse{}, agency.Errorf(agency.CodeUsage, "%q is not a method of landing", req.Method).WithHint("one of: squash, ff, merge, rebase")
	}
	asked := agency.LandingSettings{Target: req.Into, Method: method}
	if req.IncludeUncommitted {
		asked.Uncommitted = agency.IncludeUncommitted
	}
	landing := lander.Request{Ref: req.Run, Asked: asked, Message: req.Message, DryRun: req.DryRun, Landed: req.Landed, Env: req.Env}
	warnings := []string{}
	if !req.NoVerify && !req.DryRun {
		var err error
		if landing.Check, err = o.check(ctx, &req, &warnings); err != nil {
			return api.MergeRunResponse{}, err
		}
	}
	result, err := o.lander.Land(ctx, landing)
	if agency.IsCode(err, agency.CodeMergeConflict) && !req.DryRun {
		if unflagged := o.sup.Marks.FlagConflict(context.WithoutCancel(ctx), req.Run, agency.AsError(err).Message); unflagged != nil {
			return api.MergeRunResponse{}, errors.Join(err, unflagged)
		}
	}
	if err == nil && req.DryRun && !req.NoVerify && !result.Already {
		warnings, err = o.foresee(ctx, &req, result)
	}
	resp, err := o.merged(result, err)
	resp.Warnings = append(warnings, resp.Warnings...)
	return resp, err
}

// foresee returns why the target's checks would refuse a landing that was only tried, as far as
// that is known without running them. Otherwise it returns what is still unknown.
func (o landingOperations) foresee(ctx context.Context, req *api.MergeRunRequest, result *lander.Result) ([]string, error) {
	repo, err := o.sup.Repos.Of(ctx, result.Run)
	if err != nil {
		return nil, err
	}
	checks, inTheWay, err := o.knownOf(ctx, repo, &result.Landing, req.Config, req.Env)
	if err == nil && (!req.Approve || !agency.IsCode(inTheWay, agency.CodeApprovalRequired)) {
		err = inTheWay
	}
	warnings := []string{}
	for i := range checks {
		if c := &checks[i]; c.State != agency.CheckState(agency.CheckPassed) {
			warnings = append(warnings, fmt.Sprintf("the check %s has not passed on this work yet: agency verify %s --merged", c.Name, result.Run.Ref()))
		}
	}
	return warnings, err
}

// check returns the function of passing for a client's request, which ends when the daemon stops.
func (o landingOperations) check(ctx context.Context, req *api.MergeRunRequest, warnings *[]string) (func(context.Context, agency.Repo, *agency.Landing) error, error) {
	cfg, err := o.policy.ConfigFor(ctx, &req.Config, &req.Env)
	if err != nil {
		return nil, err
	}
	pass := o.sessions.Passes(&verify.Request{
		Approve: req.Approve, Env: req.Env, Deny: cfg.Env.Deny, Warn: func(text string) { *warnings = append(*warnings, text) },
	})
	return func(ctx context.Context, repo agency.Repo, l *agency.Landing) error {
		ctx, cancel := o.untilStop(ctx)
		defer cancel()
		return pass(ctx, repo, l)
	}, nil
}

func (o landingOperations) merged(result *lander.Result, err error) (api.MergeRunResponse, error) {
	if err != nil {
		return api.MergeRunResponse{}, err
	}
	return api.MergeRunResponse{
		Run: runResponse(o.sup, result.Run).Run, Landing: result.Landing, Commits: result.Commits, Files: result.Files, Branch: result.Branch,
		Removed: result.Removed, Already: result.Already, Warnings: result.Warnings,
	}, nil
}

func (o landingOperations) reviewRun(ctx context.Context, req api.ReviewRunRequest) (api.ReviewRunResponse, error) {
	v, err := o.lander.Review(ctx, lander.Request{Ref: req.Run, Asked: agency.LandingSettings{Target: req.Into}, Env: req.Env})
	if err != nil {
		return api.ReviewRunResponse{}, err
	}
	checks, err := o.known(ctx, v, &req)
	if err != nil {
		return api.ReviewRunResponse{}, err
	}
	resp := api.ReviewRunResponse{
		Run: runResponse(o.sup, v.Run).Run, Target: v.Target, Method: v.Method, Commits: v.Commits, Files: v.Files, Uncommitted: v.Uncommitted,
		Nested: v.Nested, Conflicts: v.Conflicts, Checkout: v.Checkout, Risks: []string{}, Landings: v.Landings, Checks: checks, Comments: v.Comments, Reviewed: v.Reviewed,
	}
	if e := agency.AsError(v.Obstacle); e != nil {
		resp.Obstacle, resp.Code, resp.Hint = e.Message, e.Code, e.Hint
	}
	pending := slices.DeleteFunc(slices.Clone(v.Comments), func(c agency.LineComment) bool { return c.State == agency.CommentSent })
	if len(pending) > 0 {
		resp.Message = lander.CommentMessage(pending)
	}
	if v.Report != nil {
		resp.Summary, resp.HowToTest, resp.Risks = v.Report.Summary, v.Report.HowToTest, append(resp.Risks, v.Report.Risks...)
	}
	return resp, nil
}

// known returns what is known of the target's checks for what would land, and adds to a review what
// prevents them from running.
func (o landingOperations) known(ctx context.Context, v *lander.Review, req *api.ReviewRunRequest) ([]agency.KnownCheck, error) {
	l := &v.WouldLand
	if l.Target == "" || agency.IsCode(v.Obstacle, agency.CodeNothingToLand) {
		return []agency.KnownCheck{}, nil
	}
	checks, inTheWay, err := o.knownOf(ctx, v.Repo, l, req.Config, req.Env)
	if v.Obstacle == nil {
		v.Obstacle = inTheWay
	}
	return checks, err
}

// knownOf returns what is known of the target's checks for a landing, and what prevents them from
// running.
func (o landingOperations) knownOf(ctx context.Context, repo agency.Repo, l *agency.Landing, file string, env agency.Environ) (checks []agency.KnownCheck, inTheWay, err error) {
	cfg, err := o.policy.ConfigFor(ctx, &file, &env)
	if err != nil {
		return nil, nil, err
	}
	return o.verifier.Known(ctx, &verify.Subject{
		Run: l.RunID, Repo: repo, Target: l.Target, TargetCommit: l.TargetOld, Source: l.Source, Commit: l.Candidate, Merged: true,
	}, env, cfg.Env.Deny)
}

func (o landingOperations) addComments(ctx context.Context, req api.AddCommentsRequest) (api.CommentsResponse, error) {
	remarks := make([]lander.Remark, 0, len(req.Comments))
	for _, c := range req.Comments {
		remarks = append(remarks, lander.Remark{File: c.File, Line: c.Line, Last: c.Last, Old: c.Old, Text: c.Text})
	}
	added, r, err := o.lander.Comments.Add(ctx, lander.Request{Ref: req.Run, Asked: agency.LandingSettings{Target: req.Into}}, remarks)
	if err != nil {
		return api.CommentsResponse{}, err
	}
	return api.CommentsResponse{Run: runResponse(o.sup, r).Run, Comments: added}, nil
}

func (o landingOperations) discardComments(ctx context.Context, req api.DiscardCommentsRequest) (api.CommentsResponse, error) {
	gone, r, err := o.lander.Comments.Discard(ctx, req.Run, req.Numbers)
	if err != nil {
		return api.CommentsResponse{}, err
	}
	return api.CommentsResponse{Run: runResponse(o.sup, r).Run, Comments: gone}, nil
}

func (o landingOperations) markReviewed(ctx context.Context, req api.MarkReviewedRequest) (api.RunResponse, error) {
	r, err := o.lander.Comments.Mark(ctx, req.Run, req.Files, !req.Undo)
	if err != nil {
		return api.RunResponse{}, err
	}
	return runResponse(o.sup, r), nil
}

func (o landingOperations) sendComments(ctx context.Context, req api.SendCommentsRequest) (api.SendCommentsResponse, error) {
	sent, r, delivery, err := o.lander.Comments.Deliver(ctx, lander.Request{Ref: req.Run, Asked: agency.LandingSettings{Target: req.Into}}, req.Again)
	if err != nil {
		return api.SendCommentsResponse{}, err
	}
	return api.SendCommentsResponse{
		Run: runResponse(o.sup, r).Run, Comments: sent, Confirmed: delivery.Confirmed, Effect: string(delivery.Effect), Composer: delivery.Composer,
	}, nil
}

func (o landingOperations) abandonRun(ctx context.Context, req api.AbandonRunRequest) (api.RunResponse, error) {
	by, err := o.policy.Caller(ctx)
	if err != nil {
		return api.RunResponse{}, err
	}
	r, err := o.sup.Marks.Abandon(ctx, req.Run, req.Undo, by)
	if err != nil {
		return api.RunResponse{}, err
	}
	return runResponse(o.sup, r), nil
}

func (o landingOperations) reviewSession(ctx context.Context, req api.ReviewSessionRequest) (api.ReviewSessionResponse, error) {
	s, final, parts, err := o.sessions.Finals(ctx, req.Session, req.Dir)
	if err != nil {
		return api.ReviewSessionResponse{}, err
	}
	resp := api.ReviewSessionResponse{SessionID: s.ID, Reviews: []api.ReviewRunResponse{}, Parts: parts}
	for _, r := range final {
		review, err := o.reviewRun(ctx, api.ReviewRunRequest{Run: string(r.ID), Into: req.Into, Env: req.Env, Config: req.Config})
		if err != nil {
			return api.ReviewSessionResponse{}, err
		}
		resp.Reviews = append(resp.Reviews, review)
	}
	return resp, nil
}

func (o landingOperations) mergeSession(ctx context.Context, req api.MergeSessionRequest) (api.MergeSessionResponse, error) {
	return o.sessions.Merge(ctx, req, o.mergeRun)
}
