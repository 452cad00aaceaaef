package policy

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/supervisor"
)

// boxed returns a run in a sandbox that the owner started, and what that started, and the context of
// its requests.
func (c *court) boxed(t *testing.T) (by, child *agency.Run, _ context.Context) {
	t.Helper()
	by = c.runIn(t, agency.Sandbox{Level: agency.SandboxProcess, Network: agency.NetworkAllow}, "boxed", "repo", string(c.owner.ID), "orchestrator")
	child = c.run(t, "child", "repo", string(c.run(t, "helper", "repo", string(by.ID)).ID))
	return by, child, WithClaim(t.Context(), &Claim{FromSandbox: true, Caller: supervisor.Caller{Run: by.ID, Attempt: 1, Token: by.Name}})
}

// What an agent in a sandbox can ask for is what the relay passes on, and what docs/policy.md lists.
func TestInsideOperations(t *testing.T) {
	t.Parallel()
	passed := []string{api.LogsPath}
	for _, op := range api.Operations() {
		if api.Inside(op.Name) {
			passed = append(passed, op.Name)
		}
	}
	slices.Sort(passed)
	if diff := cmp.Diff(passed, slices.Sorted(maps.Keys(insideTable))); diff != "" {
		t.Errorf("what the relay passes on and the policy differ (-relay +policy):\n%s", diff)
	}
	data, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## From a sandbox\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := []string{}
	for _, m := range regexp.MustCompile("`((?:/v1/)?[a-z]+[.a-z]*)`").FindAllStringSubmatch(section, -1) {
		if slices.Contains(operations(), m[1]) {
			documented = append(documented, m[1])
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(passed, slices.Compact(documented)); diff != "" {
		t.Errorf("docs/policy.md and the policy differ (-policy +docs):\n%s", diff)
	}
}

// An agent in a sandbox sees itself and what it started. Other runs, and their names, do not exist
// for it, and what is in no table is refused.
func TestInsideSees(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	by, child, ctx := c.boxed(t)
	for _, ref := range []string{by.Name, "child", string(child.ID)} {
		if err := c.Allow(ctx, api.ShowRun.Name, &api.RunRequest{Run: ref}); err != nil {
			t.Errorf("show %s: %v", ref, err)
		}
	}
	for _, ref := range []string{"owner", "target", "mate", "stranger", "nobody", "m"} {
		for name, req := range map[string]any{
			api.ShowRun.Name: &api.RunRequest{Run: ref}, api.ListRuns.Name: &api.ListRunsRequest{Run: ref},
			api.WaitRuns.Name: &api.WaitRunsRequest{Runs: []string{"child", ref}}, api.LogsPath: &api.LogsQuery{Run: ref},
			api.SendInput.Name: &api.SendInputRequest{Run: ref, Text: "x"}, api.ListAlerts.Name: &api.ListAlertsRequest{Run: ref},
		} {
			if err := c.Allow(ctx, name, req); !agency.IsCode(err, agency.CodeRunNotFound) {
				t.Errorf("%s of %s: %v", name, ref, err)
			}
		}
	}
	for _, name := range operations() {
		if _, ok := insideTable[name]; ok {
			continue
		}
		if err := c.Allow(ctx, name, c.request(name)); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sees, err := c.Sees(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*agency.Run{by, child, c.target, c.owner, c.mate, c.stranger} {
		if seen, err := sees(r); err != nil || seen != (r == by || r == child) {
			t.Errorf("sees %s: %v, %v", r.Name, seen, err)
		}
	}
}

// A request from a sandbox without the token of a run is nobody's, and that of a run in a sandbox is
// from there, whatever way it came.
func TestInsideClaims(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	by, _, _ := c.boxed(t)
	for name, claim := range map[string]*Claim{
		"no token":    {FromSandbox: true},
		"the user":    {FromSandbox: true, Tools: true},
		"another way": {Caller: supervisor.Caller{Run: by.ID, Attempt: 1, Token: by.Name}},
	} {
		if err := c.Allow(WithClaim(t.Context(), claim), api.CreateSession.Name, c.request(api.CreateSession.Name)); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An agent in a sandbox names nothing of the machine for the runs that it starts, and none of the
// hosts that it does not reach itself.
func TestInsideCreates(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	by, _, ctx := c.boxed(t)
	for name, spec := range map[string]agency.Spec{
		"a repository":  {Repo: "/other"},
		"a preset":      {Preset: "deploy"},
		"another agent": {Runner: agency.SpecRunner{Kind: "codex"}},
		"a branch":      {Branch: "origin/main"},
		"a file":        {Prompt: agency.SpecPrompt{Path: "/home/u/.ssh/id_rsa"}},
		"inputs":        {Inputs: []agency.SpecInput{{Path: ".env"}}},
		"variables":     {Env: []string{"PATH=/evil"}},
		"hosts":         {Hosts: []string{"example.com"}},
	} {
		if err := c.allowInside(ctx, by, api.CreateRun.Name, &api.CreateRunRequest{Spec: spec}); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	asked := &api.CreateRunRequest{Dir: "/elsewhere", Env: agency.Environ{"A=b"}, Config: "/evil.toml"}
	if err := c.allowInside(ctx, by, api.CreateRun.Name, asked); err != nil || asked.Dir != by.Worktree || asked.Env != nil || asked.Config != "" || asked.Spec.Runner.Kind != by.Runner.Kind {
		t.Errorf("got %+v, %v", asked, err)
	}
	spec := agency.Spec{Runner: agency.SpecRunner{Kind: "claude_code"}, Hosts: []string{"of.the.repository"}}
	limited := *by
	limited.MaxMinutes, limited.Attempt.StartedAt = 30, new(time.Now().Add(-20*time.Minute))
	may := &Permission{policy: c.Policy, by: &limited, cfg: c.Config()}
	if err := may.CheckChosen(t.Context(), &spec); err != nil || len(spec.Hosts) > 0 || spec.Sandbox != agency.SandboxProcess || spec.Limits.MaxMinutes != 10 {
		t.Errorf("got %+v, %v", spec, err)
	}
	limited.Attempt.StopRequestedAt = new(time.Now())
	if err := c.allowInside(ctx, &limited, api.CreateRun.Name, asked); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("while it is stopped: %v", err)
	}
}

// A request from a sandbox names so much at most, and the attempt must be the newest one.
func TestInsideBounds(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	by, _, ctx := c.boxed(t)
	many := slices.Repeat([]string{by.Name}, 101)
	for name, req := range map[string]any{
		api.WaitRuns.Name: &api.WaitRunsRequest{Runs: many}, api.AckMessages.Name: &api.AckMessagesRequest{Messages: many},
		api.AckAlerts.Name: &api.AckAlertRequest{},
	} {
		if err := c.Allow(ctx, name, req); !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	older := WithClaim(t.Context(), &Claim{FromSandbox: true, Caller: supervisor.Caller{Run: by.ID, Attempt: 1, Token: by.Name}})
	now := *by
	now.Attempt.Number = 2
	if err := c.allowInside(older, &now, api.PollMessages.Name, &api.PollMessagesRequest{}); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("an older attempt: %v", err)
	}
}

// A message from a sandbox stays in its repository, but for one to its owner and the user.
func TestInsideSends(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	_, _, ctx := c.boxed(t)
	for target, fine := range map[agency.Target]bool{
		{Owner: true}: true, {User: true}: true, {Tag: "worker"}: true, {Run: "owner"}: true, {Run: "mate"}: true, {Repo: "/elsewhere"}: true,
		{Run: "stranger"}: false, {Broadcast: true}: false,
	} {
		req := &api.SendMessageRequest{To: target}
		if err := c.Allow(ctx, api.SendMessage.Name, req); (err == nil) != fine || req.To.Repo == "/elsewhere" {
			t.Errorf("to %+v: %v, %+v", target, err, req.To)
		}
	}
}
