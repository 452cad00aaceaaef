package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
)

// verdict is the result of a check, for a model.
type verdict struct {
	Name    string         `json:"name"`
	Verdict agency.Verdict `json:"verdict"`
	Reason  string         `json:"reason,omitempty"`
	Flaky   bool           `json:"flaky,omitempty"`
	Cached  bool           `json:"cached,omitempty"`
}

// verification is a request to run checks. If it takes long, a tool waits for its answer in several
// calls.
type verification struct {
	done chan struct{}
	resp api.VerifyRunResponse // set before done is closed, like err
	err  error
}

// lasts reports whether the daemon knows the verdicts now, and would return them at once for the
// same work.
func (v *verification) lasts() bool {
	return !slices.ContainsFunc(v.resp.Checks, func(c agency.CheckResult) bool { return !c.Verdict.Lasts() })
}

// verifications are the unanswered ones of one server, by their requests.
type verifications struct {
	mu  sync.Mutex
	all map[string]*verification
}

// begin returns the verification of a request: that of an earlier call, or a new one.
func (vs *verifications) begin(ctx context.Context, s *Server, req api.VerifyRunRequest) (key string, v *verification, earlier bool) {
	key = fmt.Sprintf("%q %q %q %v %v", req.Run, req.Into, req.Check, req.Merged, req.IncludeUncommitted)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v = vs.all[key]; v != nil {
		return key, v, true
	}
	v = &verification{done: make(chan struct{})}
	vs.all[key] = v
	go func() {
		defer close(v.done)
		v.resp, v.err = api.Call(ctx, s.Client, api.VerifyRun, req)
	}()
	return key, v, false
}

// end forgets a verification, but not a newer one of the same request.
func (vs *verifications) end(key string, v *verification) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.all[key] == v {
		delete(vs.all, key)
	}
}

// wait returns the verification of a request when it has ended; nil when late comes first. The work
// may have changed since an earlier call began one. So wait asks again after that one, and the
// daemon knows the verdicts on unchanged work. It does not know a timeout and a check that could
// not run: those are returned as they are, since checks that take longer than a call would never
// get an answer.
func (vs *verifications) wait(ctx, server context.Context, s *Server, req api.VerifyRunRequest, late <-chan time.Time) (*verification, error) {
	for {
		key, v, earlier := vs.begin(server, s, req)
		select {
		case <-v.done:
			vs.end(key, v)
			if !earlier || v.err == nil && !v.lasts() {
				return v, v.err
			}
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// addChecks serves the tools about checks. Verifications end with ctx, the server's.
func (s *Server) addChecks(server context.Context, tools *toolset) error {
	type verifying struct {
		Run         string `json:"run" jsonschema:"its name, handle or id; your own name for yourself"`
		Into        string `json:"into,omitempty" jsonschema:"the branch whose checks count; default: the current one of the main worktree"`
		Merged      bool   `json:"merged,omitempty" jsonschema:"check the work as merged with that branch"`
		Uncommitted bool   `json:"include_uncommitted,omitempty" jsonschema:"also check what is not committed"`
		Check       string `json:"check,omitempty" jsonschema:"only the check of this name"`
		Seconds     int    `json:"timeout_seconds,omitempty" jsonschema:"default 45, at most 600"`
	}
	open := &verifications{all: map[string]*verification{}}
	return errors.Join(
		addOther(tools, api.VerifyRun.Tool, false, func(ctx context.Context, req *sdk.CallToolRequest, in verifying) (any, error) {
			r, err := s.find(ctx, in.Run)
			if err != nil {
				return nil, err
			}
			wait, err := duration(in.Seconds, usualWait)
			if err != nil {
				return nil, err
			}
			stop := reportProgress(ctx, req, wait, "checking "+r.Ref())
			defer stop()
			late := time.NewTimer(wait)
			defer late.Stop()
			v, err := open.wait(ctx, server, s, api.VerifyRunRequest{
				Run: string(r.ID), Into: in.Into, Merged: in.Merged, IncludeUncommitted: in.Uncommitted, Check: in.Check, Env: s.Env, Config: s.Config,
			}, late.C)
			if err != nil {
				return nil, err
			}
			if v == nil {
				return map[string]any{"timed_out": true}, nil
			}
			return verified(&v.resp), nil
		}),
		addKeys(tools, api.ShowCheck, onRun(s, func(ctx context.Context, run string, in api.ShowCheckRequest) (any, error) {
			in.Run = run
			if in.MaxBytes == 0 {
				in.MaxBytes = usualLog
			}
			return api.Call(ctx, s.Client, api.ShowCheck, in)
		})),
	)
}

// usualLog is how much of a log a model gets unless it asks for more, in bytes.
const usualLog = 16 << 10

// verified returns the verdicts of a verification, for a model.
func verified(resp *api.VerifyRunResponse) any {
	checks := make([]verdict, 0, len(resp.Checks))
	for i := range resp.Checks {
		c := &resp.Checks[i]
		checks = append(checks, verdict{Name: c.Name, Verdict: c.Verdict, Reason: c.Reason, Flaky: c.Runs > 1 && c.Verdict == agency.CheckPassed, Cached: c.Cached})
	}
	return map[string]any{
		"run": newRow(&resp.Run), "passed": resp.Passed, "timed_out": false, "target": resp.Target, "commit": resp.Source, "merged": resp.Merged,
		"checks": checks, "warnings": resp.Warnings,
	}
}
