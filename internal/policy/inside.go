package policy

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
)

// insideRule decides what an agent in a sandbox may ask for, before the table does: it sees its own
// run and what it started, and names nothing on the machine that agency would read or run outside.
// A rule replaces what a request claims about where it comes from: folder, environment, configuration.
type insideRule func(ctx context.Context, p *Policy, by *agency.Run, req any) error

var insideTable = map[string]insideRule{
	api.ListRuns.Name: inside(func(ctx context.Context, p *Policy, by *agency.Run, r *api.ListRunsRequest) error {
		r.Dir = ""
		if r.Run == "" {
			return nil // the handler leaves out what the agent does not see
		}
		return p.resolveInside(ctx, by, &r.Run)
	}),
	api.WaitRuns.Name: inside(func(ctx context.Context, p *Policy, by *agency.Run, r *api.WaitRunsRequest) error {
		if err := atMostInside("runs", len(r.Runs)); err != nil {
			return err
		}
		for i := range r.Runs {
			if err := p.resolveInside(ctx, by, &r.Runs[i]); err != nil {
				return err
			}
		}
		slices.Sort(r.Runs)
		r.Runs = slices.Compact(r.Runs)
		return nil
	}),
	api.ShowRun.Name: aboutRun(runRequest), api.ExplainRun.Name: aboutRun(runRequest),
	api.InterruptRun.Name: aboutRun(runRequest), api.StopRun.Name: aboutRun(runRequest), api.UnflagRun.Name: aboutRun(runRequest),
	api.ShowOutput.Name: aboutRun(func(r *api.ShowOutputRequest) *string { return &r.Run }),
	api.DiffRun.Name:    aboutRun(func(r *api.DiffRunRequest) *string { return &r.Run }),
	api.AnswerRun.Name:  aboutRun(func(r *api.AnswerRunRequest) *string { return &r.Run }),
	api.SendInput.Name:  aboutRun(func(r *api.SendInputRequest) *string { return &r.Run }),
	api.RemoveRun.Name:  aboutRun(func(r *api.RemoveRunRequest) *string { return &r.Run }),
	api.FlagRun.Name:    aboutRun(func(r *api.FlagRunRequest) *string { return &r.Run }),
	api.LogsPath:        aboutRun(func(q *api.LogsQuery) *string { return &q.Run }),
	api.CreateRun.Name:  inside(createInside),
	api.ResumeRun.Name: inside(func(ctx context.Context, p *Policy, by *agency.Run, r *api.ResumeRunRequest) error {
		r.Env, r.Config = nil, ""
		if len(r.Set) > 0 {
			return refusedInside(by, "variables", "what the agent needs to know belongs in its prompt")
		}
		if err := p.resolveInside(ctx, by, &r.Run); err != nil {
			return err
		}
		return p.resumeInside(ctx, by, agency.RunID(r.Run))
	}),
	api.ListAlerts.Name: inside(func(ctx context.Context, p *Policy, by *agency.Run, r *api.ListAlertsRequest) error {
		r.Dir = ""
		if r.Run == "" {
			return nil // as in a list of runs
		}
		return p.resolveInside(ctx, by, &r.Run)
	}),
	api.AckAlerts.Name: inside(ackInside),

	api.SendMessage.Name: inside(sendInside),
	api.PollMessages.Name: inside(func(_ context.Context, _ *Policy, _ *agency.Run, r *api.PollMessagesRequest) error {
		if r.Limit <= 0 || r.Limit > pollInside {
			r.Limit = pollInside
		}
		return nil
	}),
	api.AckMessages.Name: inside(func(_ context.Context, _ *Policy, _ *agency.Run, r *api.AckMessagesRequest) error {
		return atMostInside("messages", len(r.Messages))
	}),
	api.ListMessages.Name: inside(func(_ context.Context, _ *Policy, _ *agency.Run, r *api.ListMessagesRequest) error {
		r.Recipient, r.All = "", false // its own inbox, as far as it waits: the rest may be very much
		return nil
	}),
}

// pollInside is how many messages a poll from a sandbox returns.
const pollInside = 20

// mostInside is how many things a request from a sandbox can name.
const mostInside = 100

func atMostInside(what string, n int) error {
	if n > 0 && n <= mostInside {
		return nil
	}
	return agency.Errorf(agency.CodeUsage, "%d %s are named, and from a sandbox it can be 1 to %d at once", n, what, mostInside)
}

func inside[Req any](check func(ctx context.Context, p *Policy, by *agency.Run, req *Req) error) insideRule {
	return func(ctx context.Context, p *Policy, by *agency.Run, req any) error {
		return check(ctx, p, by, req.(*Req))
	}
}

func aboutRun[Req any](ref func(*Req) *string) insideRule {
	return func(ctx context.Context, p *Policy, by *agency.Run, req any) error {
		return p.resolveInside(ctx, by, ref(req.(*Req)))
	}
}

// isInside reports whether a request comes from a sandbox.
func isInside(ctx context.Context) bool {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	return ok && c.FromSandbox
}

// allowInside refuses what an agent in a sandbox may not ask for.
func (p *Policy) allowInside(ctx context.Context, by *agency.Run, operation string, req any) error {
	rule, ok := insideTable[operation]
	claim, _ := ctx.Value(claimKey{}).(*Claim)
	switch {
	case by == nil:
		return agency.Errorf(agency.CodePermissionDenied, "a request from a sandbox names no run")
	case claim.Caller.Attempt != by.Attempt.Number || by.Attempt.State.Final() || by.RemovedAt != nil:
		return agency.Errorf(agency.CodePermissionDenied, "the attempt %d of %s is over", claim.Caller.Attempt, by.Ref())
	case !ok:
		return agency.Errorf(agency.CodePermissionDenied, "%q does not work in a sandbox", strings.TrimPrefix(operation, "/v1/")).
			WithDetail("operation", operation).WithHint("%s", api.InsideHint)
	}
	return rule(ctx, p, by, req)
}

// seesInside reports whether an agent in a sandbox sees a run: its own, or one that it started.
func (p *Policy) seesInside(ctx context.Context, by, r *agency.Run) (bool, error) {
	if r.ID == by.ID {
		return true, nil
	}
	owners, err := p.Callers.Owners(ctx, r.Owner)
	return slices.Contains(owners, by.ID), err
}

// resolveInside replaces a reference by the id of its run. A run that the agent does not see does not
// exist for it, and neither do the names of others.
func (p *Policy) resolveInside(ctx context.Context, by *agency.Run, ref *string) error {
	r, err := p.Records.Resolve(ctx, *ref)
	sees := false
	if err == nil {
		sees, err = p.seesInside(ctx, by, r)
	}
	switch {
	case sees:
		*ref = string(r.ID)
		return nil
	case err == nil, agency.IsCode(err, agency.CodeRunNotFound), agency.IsCode(err, agency.CodeRunAmbiguous):
		return unseen(by, *ref)
	default:
		return err
	}
}

// unseen is the error for a run that the agent does not see.
func unseen(by *agency.Run, ref string) error {
	return agency.Errorf(agency.CodeRunNotFound, "%s sees no run %q from its sandbox, only itself and what it started", by.Ref(), ref).WithHint("agency ls")
}

// Tree returns the id of the topmost run above the one that sent a request, or of that run itself.
func (p *Policy) Tree(ctx context.Context) (string, error) {
	by, _, err := p.Agent(ctx)
	if err != nil || by == nil {
		return "", err
	}
	owners, err := p.Callers.Owners(ctx, by.Owner)
	if len(owners) > 0 {
		return string(owners[len(owners)-1]), err
	}
	return string(by.ID), err
}

// Sees returns what tells the sender of a request whether it sees a run; nil when it sees all.
func (p *Policy) Sees(ctx context.Context) (func(*agency.Run) (bool, error), error) {
	if !isInside(ctx) {
		return nil, nil
	}
	by, _, err := p.Agent(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{by.Owner: false} // by the owner of a run
	return func(r *agency.Run) (seen bool, err error) {
		if r.ID == by.ID {
			return true, nil
		}
		seen, is := known[r.Owner]
		if !is {
			seen, err = p.seesInside(ctx, by, r)
			known[r.Owner] = seen
		}
		return seen, err
	}, nil
}

// branchInside begins the names of branches that an agent in a sandbox may make: others could be taken
// for refs of the user's.
const branchInside = "agency/"

// resumeInside lets an agent in a sandbox start again what ends no later than its own run.
func (p *Policy) resumeInside(ctx context.Context, by *agency.Run, id agency.RunID) error {
	if by.Attempt.StopRequestedAt != nil {
		return stopping(by)
	}
	r, err := p.Store.Run(ctx, id)
	if err != nil {
		return err
	}
	if left := p.minutesLeft(by); left > 0 && (r.MaxMinutes == 0 || r.MaxMinutes > left) {
		return agency.Errorf(agency.CodePermissionDenied, "%s ends in %d minutes, and an attempt of %s may take longer", by.Ref(), left, r.Ref()).
			WithHint("start a new run, which ends with it")
	}
	return nil
}

// stopping is the error for a run that is being stopped and wants to start something.
func stopping(by *agency.Run) error {
	return agency.Errorf(agency.CodePermissionDenied, "%s is being stopped, and may start nothing", by.Ref())
}

// minutesLeft returns how many minutes are left of the time limit of a run, at least one; 0 without a
// limit.
func (p *Policy) minutesLeft(r *agency.Run) int {
	if r.MaxMinutes == 0 || r.Attempt.StartedAt == nil {
		return r.MaxMinutes
	}
	return max(1, r.MaxMinutes-int(p.Now().Sub(*r.Attempt.StartedAt).Minutes()))
}

// createInside lets an agent in a sandbox start runs in its repository, from its worktree. What a
// spec can name beside that, agency would read outside of the sandbox, or give to a run that has more than
// the agent: presets have variables, and each coding agent has credentials and hosts of its own.
func createInside(_ context.Context, _ *Policy, by *agency.Run, r *api.CreateRunRequest) error {
	r.Dir, r.Env, r.Config = by.Worktree, nil, ""
	s := &r.Spec
	const ask = "ask the user: agency report needs-input --question ..."
	switch {
	case by.Attempt.StopRequestedAt != nil:
		return stopping(by)
	case s.Repo != "":
		return refusedInside(by, "a repository", "the run starts in that of "+by.Ref())
	case s.Preset != "":
		return refusedInside(by, "a preset", "name a runner and a model, and say the role in the prompt")
	case s.Prompt.Path != "":
		return refusedInside(by, "the file of a prompt", "agency run --prompt-file reads a file and sends its text")
	case len(s.Inputs) > 0:
		return refusedInside(by, "inputs", "leave them out")
	case len(s.Env) > 0:
		return refusedInside(by, "variables", "what the agent needs to know belongs in its prompt")
	case len(s.Hosts) > 0:
		return refusedInside(by, "hosts", ask)
	case s.Branch != "" && !strings.HasPrefix(s.Branch, branchInside), s.Branch == branchInside+"HEAD":
		return refusedInside(by, "a branch outside of "+branchInside, "--branch "+branchInside+"NAME")
	}
	if s.Runner.Kind == "" {
		s.Runner.Kind, s.Runner.Name = by.Runner.Kind, by.Runner.Name
	}
	if s.Runner.Kind != agency.Custom {
		s.Runner.Name = ""
	}
	if s.Runner.Kind != by.Runner.Kind && s.Runner.Kind != agency.Shell && s.Runner.Kind != agency.Custom {
		return refusedInside(by, "another coding agent", ask)
	}
	return nil
}

func refusedInside(by *agency.Run, what, wayOut string) error {
	return agency.Errorf(agency.CodePermissionDenied, "%s may not name %s for a run from its sandbox", by.Ref(), what).WithHint("%s", wayOut)
}

// ackInside lets an agent in a sandbox acknowledge alerts about what it started.
func ackInside(ctx context.Context, p *Policy, by *agency.Run, r *api.AckAlertRequest) error {
	r.Dir = ""
	if err := atMostInside("alerts", len(r.Alerts)); err != nil {
		return err
	}
	alerts, err := p.Store.Alerts(ctx, agency.AlertFilter{IDs: r.Alerts, Resolved: true})
	if err != nil {
		return err
	}
	for i := range alerts {
		stands, err := p.standsToAlert(ctx, by, &alerts[i])
		if err != nil {
			return err
		}
		if stands&owner == 0 {
			return notAllowed(api.AckAlerts.Name, by, owner)
		}
	}
	return nil
}

// sendInside lets an agent in a sandbox write to its owner, to the user, and to the runs of its
// repository.
func sendInside(ctx context.Context, p *Policy, by *agency.Run, r *api.SendMessageRequest) error {
	switch {
	case agency.IsReport(r.Type):
		return agency.Errorf(agency.CodePermissionDenied, "a message of the type %s is a report of agency", r.Type).WithHint("agency report does that; or give another type")
	case r.To.Broadcast:
		return agency.Errorf(agency.CodePermissionDenied, "%s may not write to the runs of all repositories from its sandbox", by.Ref()).
			WithHint("write to those of its repository: agency messages send --repo .")
	case r.To.Repo != "":
		r.To.Repo = by.Repo.Root
	case r.To.Run != "":
		to, err := p.Records.Resolve(ctx, r.To.Run)
		if err != nil && !agency.IsCode(err, agency.CodeRunNotFound) && !agency.IsCode(err, agency.CodeRunAmbiguous) {
			return err
		}
		if err != nil || to.Repo.Fingerprint != by.Repo.Fingerprint && string(to.ID) != by.Owner {
			return agency.Errorf(agency.CodeRunNotFound, "there is no run %q in the repository of %s", r.To.Run, by.Ref()).WithHint("its owner: agency messages send --owner")
		}
		r.To.Run = string(to.ID)
	}
	return nil
}
