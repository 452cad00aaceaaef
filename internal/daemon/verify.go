package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/policy"
	"agency/internal/runner"
	"agency/internal/supervisor"
	"agency/internal/verify"
)

// verifyOperations serve the operations on checks.
type verifyOperations struct {
	verifier  *verify.Verifier
	sup       *supervisor.Supervisor
	policy    *policy.Policy
	untilStop untilStop
}

// newVerifier returns the verifier of this daemon.
func (d *Daemon) newVerifier() *verify.Verifier {
	return verify.New(verify.Deps{
		Store: d.store, Git: d.git, Projects: d.sup.Projects, Runs: d.sup.Records, Repos: d.sup.Repos, Marks: d.sup.Marks,
		RunSetup: func(ctx context.Context, s agency.SetupCommand) error {
			return runner.RunSetup(ctx, []string{d.Exec, "marked"}, s, d.serving(), newProxy)
		},
		RunCheck: func(ctx context.Context, c agency.SetupCommand) (agency.Verdict, string, error) {
			return runner.RunCheck(ctx, []string{d.Exec, "marked"}, c, d.serving())
		},
		Target:  d.lander.Target,
		EndTree: attempts{d.serving()}.endMarked,
		Room:    d.disks.CheckRoom, Parallel: func() int { return d.active.config().Queue.Parallel },
		Home: d.Config.Home, Logger: d.Log, Now: d.clock.Now, Random: fillRandom,
	})
}

func (o verifyOperations) verifyRun(ctx context.Context, req api.VerifyRunRequest) (api.VerifyRunResponse, error) {
	cfg, err := o.policy.ConfigFor(ctx, &req.Config, &req.Env)
	if err != nil {
		return api.VerifyRunResponse{}, err
	}
	ctx, cancel := o.untilStop(ctx)
	defer cancel()
	warnings := []string{}
	done, err := o.verifier.Verify(ctx, verify.Request{
		Run: req.Run, Into: req.Into, Merged: req.Merged, Uncommitted: req.IncludeUncommitted, Check: req.Check, NoCache: req.NoCache,
		Approve: req.Approve, Env: req.Env, Deny: cfg.Env.Deny, Warn: func(text string) { warnings = append(warnings, text) },
	})
	if err != nil {
		return api.VerifyRunResponse{}, err
	}
	r, err := o.sup.Records.Run(ctx, done.Run.ID) // with the flag that the verdicts set or removed
	if err != nil {
		return api.VerifyRunResponse{}, err
	}
	return api.VerifyRunResponse{
		Run: runResponse(o.sup, r).Run, Target: done.Target, Source: done.Source, Commit: done.Commit, Merged: done.Merged,
		Passed: done.Passed(), Checks: done.Checks, Warnings: warnings,
	}, nil
}

func (o verifyOperations) showCheck(ctx context.Context, req api.ShowCheckRequest) (api.ShowCheckResponse, error) {
	run, check, output, more, err := o.verifier.Log(ctx, req.Run, req.Check, req.MaxBytes)
	if err != nil {
		return api.ShowCheckResponse{}, err
	}
	return api.ShowCheckResponse{RunID: run, Check: check, Output: output, Truncated: more}, nil
}
