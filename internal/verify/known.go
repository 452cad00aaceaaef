package verify

import (
	"context"
	"sync"

	"agency"
)

// Known returns what is known of the checks of a target for the commit of a subject, in the order
// of the configuration, and runs nothing. env is the caller's environment and deny names what no
// check gets of it: a verdict holds for one environment. Without a commit, as for work that
// conflicts, no check has run. inTheWay is the error of Pass that already forbids the landing; it
// is nil when checks only have to run. A target without checks has none.
func (v *Verifier) Known(ctx context.Context, s *Subject, env, deny []string) (checks []agency.KnownCheck, inTheWay, err error) {
	checks = []agency.KnownCheck{}
	plan, err := v.Projects.PlanChecks(ctx, s.Repo, s.Target, s.TargetCommit)
	switch {
	case agency.IsCode(err, agency.CodeNoChecks):
		return checks, nil, nil
	case err != nil: // nothing lands before this error is solved
		return checks, err, nil
	}
	treeHash := ""
	if s.Commit != "" {
		if inTheWay = v.hold(ctx, s, plan, false); inTheWay != nil && !agency.IsCode(inTheWay, agency.CodeApprovalRequired) {
			return checks, nil, inTheWay
		}
		if treeHash, err = v.Git.Tree(ctx, s.Repo, s.Commit); err != nil {
			return checks, nil, err
		}
	}
	envHash := environmentHash(environment(env, deny))
	for i := range plan.Project.Checks {
		c := &plan.Project.Checks[i]
		known := agency.KnownCheck{Name: c.Name, State: agency.CheckNotRun}
		if inTheWay != nil {
			known.State = agency.CheckHeld
		}
		if treeHash != "" {
			key := agency.CheckKey{Repo: s.Repo.Fingerprint, Tree: treeHash, Check: c.Hash(&plan.Project), Env: envHash}
			if err := v.know(ctx, key, &known); err != nil {
				return checks, nil, err
			}
		}
		checks = append(checks, known)
	}
	for i := range checks {
		if c := &checks[i]; inTheWay == nil && c.State == agency.CheckState(agency.CheckFailed) {
			r, err := v.Runs.Resolve(ctx, string(s.Run))
			if err != nil {
				return checks, nil, err
			}
			inTheWay = notPassed(r, s.Target, agency.CodeCheckFailed, c.Name, c.Reason)
		}
	}
	return checks, inTheWay, nil
}

// know fills in what is known about a key.
func (v *Verifier) know(ctx context.Context, key agency.CheckKey, known *agency.KnownCheck) error {
	if v.running.has(key) {
		known.State = agency.CheckRunning
		return nil
	}
	result, err := v.Store.KnownCheck(ctx, key)
	if err != nil || result == nil {
		return err
	}
	known.State, known.Reason, known.Runs, known.Ended = agency.CheckState(result.Verdict), result.Reason, result.Runs, &result.Ended
	return nil
}

// running are the checks that run now. It may be used by several goroutines.
type running struct {
	mu   sync.Mutex
	keys map[agency.CheckKey]int
}

// begin notes that a check runs, until end is called.
func (r *running) begin(key agency.CheckKey) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[agency.CheckKey]int{}
	}
	r.keys[key]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.keys[key]--; r.keys[key] == 0 {
			delete(r.keys, key)
		}
	}
}

func (r *running) has(key agency.CheckKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[key] > 0
}
