package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/plan"
	"agency/internal/policy"
)

// Retry begins a session with the plan of a settled one, or with what its files now are. Agents
// that were complete there are complete here, with their runs, so that later agents can start from
// their results. One transaction records all of it.
func (all *Sessions) Retry(ctx context.Context, req api.RetrySessionRequest) (api.RetrySessionResponse, error) {
	var none api.RetrySessionResponse
	may, err := all.Policy.Permission(ctx, &req.Config, &req.Env)
	if err != nil {
		return none, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return none, err
	}
	old, err := all.Finder.LookUp(ctx, req.Session, req.Dir)
	if err != nil {
		return none, err
	}
	if err := retriable(old, &req); err != nil {
		return none, err
	}
	next, err := all.planned(ctx, old, &req, cfg, may)
	if err == nil {
		err = all.clearUnlanded(ctx, old.ID, next.agents)
	}
	if err != nil {
		return none, err
	}
	s, err := all.begin(ctx, cfg, old.Repo.Root, req.Config)
	if err != nil {
		return none, err
	}
	s.Name, s.Source, s.SourceFile, s.PlanPath, s.PlanHash, s.MaxParallel = old.Name, old.Source, old.SourceFile, old.PlanPath, old.PlanHash, old.MaxParallel
	s.RetryOf = old.ID
	if req.NewPlan {
		s.Name, s.PlanHash, s.MaxParallel = next.plan.Name, next.hash, next.plan.MaxParallel
	}
	agents := carryOver(newAgents(s, next.plan), next.agents, next.keep)
	if !slices.ContainsFunc(agents, func(a agency.SessionAgent) bool { return a.Status == agency.AgentQueued }) && !next.lands() {
		return none, nothingToRetry(old, &req)
	}
	if req.DryRun {
		view, err := all.view(ctx, old)
		return api.RetrySessionResponse{Session: view, Warnings: next.warnings, Difference: next.difference}, err
	}
	fewer, free, err := may.ReserveParallel(ctx, &s.MaxParallel)
	if err != nil {
		return none, err
	}
	defer free()
	if fewer != "" {
		next.warnings = append(next.warnings, fewer)
	}
	if err := all.checkSetups(ctx, cfg, next.plan, s.Repo, s.Repo.Root, req.Env); err != nil {
		return none, err
	}
	if err := all.Scheduler.Create(ctx, s, next.plan, agents, req.Env); err != nil {
		return none, err
	}
	all.Files.Write(ctx, s.ID) // the client may read its files at once
	view, err := all.view(ctx, s)
	return api.RetrySessionResponse{Session: view, Warnings: next.warnings, Difference: next.difference}, err
}

// planned returns what a retry does, by the plan that the session has or by a new one.
func (all *Sessions) planned(ctx context.Context, old *agency.Session, req *api.RetrySessionRequest, cfg *config.Config, may *policy.Permission) (*retry, error) {
	if req.NewPlan {
		return all.byNewPlan(ctx, old, req, cfg, may)
	}
	return all.bySamePlan(ctx, old, req, may)
}

// retriable refuses a retry that is impossible whatever the plan holds.
func retriable(old *agency.Session, req *api.RetrySessionRequest) error {
	switch {
	case old.External:
		return agency.Errorf(agency.CodeInvalidState, "the agents of session %s are run by another program", old.ID).
			WithHint("that program can run the rest again, in a new session: agency session create")
	case !old.Status.Final():
		return agency.Errorf(agency.CodeInvalidState, "session %s is running", old.ID).WithHint("agency session wait %s", old.ID)
	case req.NewPlan && (req.Failed || req.PlanChanged):
		return agency.Errorf(agency.CodeUsage, "a new plan decides what runs again: it goes neither with only what failed nor with the old plan").
			WithHint("agency session retry %s --plan-changed new", old.ID)
	case req.NewPlan && old.PlanPath == "":
		return agency.Errorf(agency.CodeInvalidState, "session %s was started without a file, so there is no plan to read again", old.ID).
			WithHint("to run again what is not complete: agency session retry %s", old.ID)
	}
	return nil
}

// nothingToRetry returns the error for a retry without an agent to run and work to land.
func nothingToRetry(old *agency.Session, req *api.RetrySessionRequest) error {
	switch {
	case req.NewPlan:
		return agency.Errorf(agency.CodeInvalidState, "every agent of the plan %s is complete and unchanged, so there is nothing to run", old.PlanPath).
			WithHint("agency session show %s", old.ID)
	case req.Failed && old.Counts.Complete < old.Counts.Total:
		return agency.Errorf(agency.CodeInvalidState, "no agent of session %s failed", old.ID).
			WithHint("to run again what is not complete: agency session retry %s", old.ID)
	default:
		return agency.Errorf(agency.CodeInvalidState, "session %s is complete, so there is nothing to run again", old.ID).WithHint("agency session show %s", old.ID)
	}
}

// retry is what a new session takes from a settled one.
type retry struct {
	plan       *agency.Plan
	hash       string                // of the files of a new plan
	agents     []agency.SessionAgent // of the settled session
	keep       func(before *agency.SessionAgent) bool
	warnings   []string
	difference *api.PlanDifference // nil without a new plan
}

// lands reports whether work that the retry takes over is to land and did not land before.
func (r *retry) lands() bool {
	by := make(map[string]agency.LandBy, len(r.plan.Agents))
	for i := range r.plan.Agents {
		by[r.plan.Agents[i].ID] = r.plan.Agents[i].Land
	}
	return slices.ContainsFunc(r.agents, func(a agency.SessionAgent) bool {
		open := a.Landing.State == "" || a.Landing.State == agency.WorkRefused
		return open && by[a.ID] != "" && a.Run != "" && a.Status == agency.AgentComplete && r.keep(&a)
	})
}

// bySamePlan returns what a retry by the plan of the settled session does.
func (all *Sessions) bySamePlan(ctx context.Context, old *agency.Session, req *api.RetrySessionRequest, may *policy.Permission) (*retry, error) {
	if err := all.checkPlan(ctx, old, req.PlanChanged, fmt.Sprintf("agency session retry %s --plan-changed new", old.ID)); err != nil {
		return nil, err
	}
	p, agents, err := all.Scheduler.Plan(ctx, old.ID)
	if err != nil {
		return nil, err
	}
	for i := range p.Agents {
		if err := may.CheckLanding(p.Agents[i].Land); err != nil {
			return nil, err
		}
	}
	skipped := map[string]bool{}
	if req.Failed {
		skipped = skippedByFailure(old, p, agents)
	}
	keep := func(before *agency.SessionAgent) bool {
		return before.Status == agency.AgentComplete || req.Failed && before.Status == agency.AgentCancelled && !skipped[before.ID]
	}
	return &retry{plan: p, agents: agents, keep: keep, warnings: []string{}}, nil
}

// byNewPlan returns what a retry by the plan's files as they are now does: an agent is kept if it
// is complete, its entry in the plan is the same, and so is everything that it comes after.
func (all *Sessions) byNewPlan(ctx context.Context, old *agency.Session, req *api.RetrySessionRequest, cfg *config.Config, may *policy.Permission) (*retry, error) {
	before, agents, err := all.Scheduler.Plan(ctx, old.ID)
	if err != nil {
		return nil, err
	}
	dir := old.Repo.Root
	if repo, err := all.Git.Discover(ctx, filepath.Dir(old.PlanPath)); err == nil && repo.Fingerprint == old.Repo.Fingerprint {
		dir = filepath.Dir(old.PlanPath) // a worktree of the repository, with files of its own
	}
	src := api.PlanSource{Path: old.PlanPath}
	if given := before.Given; given != nil {
		src.Name, src.Base, src.MaxParallel, src.OnFailure, src.Land = given.Name, given.Base, given.MaxParallel, string(given.OnFailure), string(given.Land)
	}
	p, repo, warnings, err := all.loadPlan(ctx, src, dir, req.Env, cfg, may)
	if err != nil {
		return nil, err
	}
	hash, err := sourceHash(p.Path, repo.Toplevel, p)
	if err != nil {
		return nil, err
	}
	keepCommits(before, p)
	if err := all.pinPlan(ctx, p, repo, dir, cfg); err != nil {
		return nil, err
	}
	changes := plan.Changes(before, p)
	complete := make(map[string]bool, len(agents))
	for i := range agents {
		complete[agents[i].ID] = agents[i].Status == agency.AgentComplete
	}
	kept := plan.Kept(p, changes, complete)
	diff := &api.PlanDifference{Plan: old.PlanPath, Changes: changes, Kept: []string{}, Runs: []string{}}
	for i := range p.Agents {
		if id := p.Agents[i].ID; kept[id] {
			diff.Kept = append(diff.Kept, id)
		} else {
			diff.Runs = append(diff.Runs, id)
		}
	}
	return &retry{
		plan: p, hash: hash, agents: agents, warnings: warnings, difference: diff,
		keep: func(before *agency.SessionAgent) bool { return kept[before.ID] },
	}, nil
}

// keepCommits gives the agents of a new plan that begin at the HEAD of their caller the branch or the
// commit that this was for the old one: see pinPlan.
func keepCommits(before, p *agency.Plan) {
	was := map[string]string{}
	for i := range before.Agents {
		was[before.Agents[i].ID] = before.Agents[i].Base
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		if base := was[a.ID]; (a.Base == "" || a.Base == "HEAD") && (isCommit(base) || strings.HasPrefix(base, branchRefs)) {
			a.Base = base
		}
	}
}

// isCommit reports whether a base is the full name of a commit.
func isCommit(base string) bool {
	return (len(base) == 40 || len(base) == 64) && strings.Trim(base, "0123456789abcdef") == ""
}

// skippedByFailure returns the agents of a settled session that never began because another one
// failed.
func skippedByFailure(s *agency.Session, p *agency.Plan, agents []agency.SessionAgent) map[string]bool {
	ended := func(a *agency.SessionAgent) time.Time { return orZero(a.CompletedAt) }
	skipped := map[string]bool{}
	for i := range agents {
		failed := &agents[i]
		if failed.Status != agency.AgentFailed {
			continue
		}
		after := p.Dependents(failed.ID)
		for j := range agents {
			a := &agents[j]
			never := a.Status == agency.AgentCancelled && a.StartedAt == nil && !ended(a).Before(ended(failed))
			withAll := s.CancelAt != nil && !ended(a).Before(*s.CancelAt)
			if never && !withAll && (p.OnFailure == agency.StopOnFailure || slices.Contains(after, a.ID)) {
				skipped[a.ID] = true
			}
		}
	}
	return skipped
}

// clearUnlanded clears the landings of agents whose work left its queue and did not land.
func (all *Sessions) clearUnlanded(ctx context.Context, id agency.SessionID, agents []agency.SessionAgent) error {
	entries, err := all.Store.SessionQueue(ctx, id)
	for i := range agents {
		if a := &agents[i]; a.Landing.State == agency.WorkQueued && !inQueue(entries, a) {
			a.Landing = agency.AgentLanding{}
		}
	}
	return err
}

// carryOver copies the agents of an old session that are kept to a new one, whose plan may have
// others.
func carryOver(fresh, old []agency.SessionAgent, keep func(before *agency.SessionAgent) bool) []agency.SessionAgent {
	kept := make(map[string]*agency.SessionAgent, len(old))
	for i := range old {
		if keep(&old[i]) {
			kept[old[i].ID] = &old[i]
		}
	}
	for i := range fresh {
		a := &fresh[i]
		if before := kept[a.ID]; before != nil {
			taken := *before
			if s := taken.Landing.State; s != agency.WorkLanded && s != agency.WorkQueued {
				taken.Landing = agency.AgentLanding{} // the new session lands it, with what starts from it now
			}
			taken.Session, taken.Position, taken.Wave, taken.PromptPath, taken.LogFile = a.Session, a.Position, a.Wave, a.PromptPath, a.LogFile
			*a = taken
		}
	}
	return fresh
}
