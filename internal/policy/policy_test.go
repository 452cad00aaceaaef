package policy

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// court is a policy, with runs in every relation to one of them.
type court struct {
	*Policy
	store                                       *sqlite.Store
	target, owner, orchestrator, mate, stranger *agency.Run
	session                                     *agency.Session
	alert                                       string
}

func newCourt(t *testing.T) *court {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "agency.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cfg, err := config.Load("", []string{"HOME=" + dir, "AGENCY_HOME=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	sup := supervisor.New(supervisor.Deps{Store: store, Now: time.Now}, supervisor.Settings{Home: dir})
	c := &court{store: store, Policy: New(Deps{
		Store: store, Records: sup.Records, Callers: sup.Callers, Runs: sup.Live,
		LookUp: scheduler.Finder{Store: store}.LookUp, Config: func() *config.Config { return cfg }, Now: time.Now,
	})}
	c.owner = c.run(t, "owner", "repo", agency.User)
	c.target = c.run(t, "target", "repo", string(c.run(t, "between", "repo", string(c.owner.ID)).ID))
	c.orchestrator = c.run(t, "orchestrator", "repo", agency.User, "orchestrator")
	c.mate = c.run(t, "mate", "repo", agency.User)
	c.stranger = c.run(t, "stranger", "elsewhere", agency.User, "orchestrator")
	c.session = &agency.Session{
		ID: agency.NewSessionID(time.Now(), [4]byte{1}), Repo: c.target.Repo, Status: agency.SessionRunning, Owner: string(c.owner.ID), StartedAt: time.Now(), MaxParallel: 3,
	}
	if err := store.CreateSession(t.Context(), c.session, []agency.SessionAgent{{Session: c.session.ID, ID: "001", Status: agency.AgentQueued}}, nil); err != nil {
		t.Fatal(err)
	}
	a := &agency.Alert{ID: "a_1", Kind: agency.AlertStuck, RunID: c.target.ID, Attempt: 1, Payload: []byte("{}"), OpenedAt: time.Now()}
	if _, err := store.OpenAlert(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	c.alert = a.ID
	return c
}

func (c *court) run(t *testing.T, name, repo, owner string, tags ...string) *agency.Run {
	t.Helper()
	return c.runIn(t, agency.Sandbox{}, name, repo, owner, tags...)
}

func (c *court) runIn(t *testing.T, in agency.Sandbox, name, repo, owner string, tags ...string) *agency.Run {
	t.Helper()
	id := agency.NewRunID(time.Now(), [10]byte([]byte(rand.Text())))
	r := &agency.Run{
		ID: id, Handle: name + "-handle", Name: name, Repo: agency.Repo{Fingerprint: repo, Root: "/" + repo}, Branch: "agency/" + name, Worktree: "/w/" + name, Dir: "/r/" + name,
		Runner: agency.Runner{Kind: "claude_code", Name: "claude_code", Args: []string{}}, Tags: append([]string{}, tags...), Owner: owner, Sandbox: in,
		Attempt: agency.Attempt{Number: 1, State: agency.Running, CreatedAt: time.Now()},
	}
	if err := c.store.CreateRun(t.Context(), r, agency.Creation{TokenHash: agency.TokenHash(name), Spec: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	return r
}

// as returns the context of a request that proves to be from a run; nil is the user.
func (c *court) as(ctx context.Context, r *agency.Run) context.Context {
	claim := &Claim{}
	if r != nil {
		claim.Caller = supervisor.Caller{Run: r.ID, Attempt: 1, Token: r.Name}
	}
	return WithClaim(ctx, claim)
}

// request returns a request about the target, in the form that the policy reads for an operation.
func (c *court) request(operation string) any {
	run := c.target.Name
	switch operation {
	case api.AnswerRun.Name:
		return &api.AnswerRunRequest{Run: run}
	case api.SendInput.Name:
		return &api.SendInputRequest{Run: run, Text: "go on"}
	case api.StartTimer.Name:
		return &api.StartTimerRequest{Run: run, Message: "check"}
	case api.ResumeRun.Name:
		return &api.ResumeRunRequest{Run: run}
	case api.RemoveRun.Name:
		return &api.RemoveRunRequest{Run: run}
	case api.ChangeTags.Name:
		return &api.ChangeTagsRequest{Run: run, Add: []string{"x"}}
	case api.AbandonRun.Name:
		return &api.AbandonRunRequest{Run: run}
	case api.FlagRun.Name:
		return &api.FlagRunRequest{Run: run, Reason: "look"}
	case api.AddToQueue.Name:
		return &api.AddToQueueRequest{Runs: []string{run}}
	case api.VerifyRun.Name:
		return &api.VerifyRunRequest{Run: run}
	case api.RestoreSnapshot.Name:
		return &api.RestoreSnapshotRequest{Run: run}
	case api.AckAlerts.Name:
		return &api.AckAlertRequest{Alerts: []string{c.alert}}
	case api.SnoozeAlerts.Name:
		return &api.SnoozeAlertRequest{Alerts: []string{c.alert}}
	case api.ResumeSession.Name:
		return &api.ResumeSessionRequest{Session: string(c.session.ID)}
	case api.RetrySession.Name:
		return &api.RetrySessionRequest{Session: string(c.session.ID)}
	case api.UpdateSession.Name:
		return &api.UpdateSessionRequest{Session: string(c.session.ID)}
	case api.RemoveSessions.Name:
		return &api.RemoveSessionsRequest{Session: string(c.session.ID)}
	case api.PauseSession.Name, api.CancelSession.Name, api.SessionUpdatesPath:
		return &api.SessionRequest{Session: string(c.session.ID)}
	default:
		return &api.RunRequest{Run: run}
	}
}

// operations returns the names of all that the daemon serves: the table, and the streams.
func operations() []string {
	names := []string{}
	for _, s := range api.Streams() {
		if s.Path != api.AlivePath { // which tells nothing
			names = append(names, s.Path)
		}
	}
	for _, op := range api.Operations() {
		names = append(names, op.Name)
	}
	slices.Sort(names)
	return names
}

// The table in docs/policy.md matches the policy: for every operation, it lists which relations to
// the subject allow it.
func TestPolicy(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	all := operations()
	if diff := cmp.Diff(all, slices.Sorted(maps.Keys(table))); diff != "" {
		t.Fatalf("operations without an entry, or entries without an operation (-operations +policy):\n%s", diff)
	}
	documented := documentedPolicy(t)
	for _, operation := range all {
		if err := c.Allow(c.as(t.Context(), nil), operation, c.request(operation)); err != nil {
			t.Errorf("%s of the user: %v", operation, err)
		}
		may := []string{}
		for _, by := range []*agency.Run{c.target, c.owner, c.orchestrator, c.mate, c.stranger} {
			may = append(may, c.decides(t, operation, by))
		}
		if got, want := strings.Join(may, " "), documented[operation]; got != want {
			t.Errorf("%s: runs may %q, and docs/policy.md says %q", operation, got, want)
		}
	}
}

// decides returns "yes" or "-". It fails the test when the decision is anything else.
func (c *court) decides(t *testing.T, operation string, by *agency.Run) string {
	t.Helper()
	if table[operation].runs == neighbour { // it looks at the folder of a repository, and there is none
		return map[bool]string{true: "yes", false: "-"}[by.Repo.Fingerprint == c.target.Repo.Fingerprint]
	}
	err := c.Allow(c.as(t.Context(), by), operation, c.request(operation))
	switch {
	case err == nil:
		return "yes"
	case agency.IsCode(err, agency.CodePermissionDenied):
		return "-"
	default:
		t.Errorf("%s of %s: %v", operation, by.Name, err)
		return err.Error()
	}
}

func documentedPolicy(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	found, quoted := map[string]string{}, regexp.MustCompile("`((?:/v1/)?[a-z.]+)`")
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 6 || !strings.Contains(cells[0], "`") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
			if m[1] != "discard" {
				found[m[1]] = strings.TrimSuffix(strings.Join(cells[1:], " "), " |")
			}
		}
	}
	return found
}

// Only the user may call an operation without an entry, and a forged token is refused.
func TestPolicyDenies(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	if err := c.Allow(c.as(t.Context(), c.owner), "run.explode", nil); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("an unknown operation: %v", err)
	}
	disk := &agency.Alert{ID: "a_2", Kind: agency.AlertHostDisk, Cause: "/data", Payload: []byte("{}"), OpenedAt: time.Now()}
	if _, err := c.store.OpenAlert(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	for _, by := range []*agency.Run{c.owner, c.orchestrator} {
		err := c.Allow(c.as(t.Context(), by), api.AckAlerts.Name, &api.AckAlertRequest{Alerts: []string{c.alert, disk.ID}})
		if !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s on an alert of the host: %v", by.Name, err)
		}
	}
	forged := WithClaim(t.Context(), &Claim{Caller: supervisor.Caller{Run: c.owner.ID, Attempt: 1, Token: "guess"}})
	if err := c.Allow(forged, api.StopRun.Name, c.request(api.StopRun.Name)); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("a forged token: %v", err)
	}
	tools := WithClaim(t.Context(), &Claim{Tools: true})
	for operation, req := range map[string]any{
		api.SendInput.Name:  &api.SendInputRequest{Run: "target", Text: " \x1b!id"},
		api.StartTimer.Name: &api.StartTimerRequest{Run: "target", Message: "/permissions"},
		api.RemoveRun.Name:  &api.RemoveRunRequest{Run: "target", Discard: true},
		api.ChangeTags.Name: &api.ChangeTagsRequest{Run: "target", Add: []string{"orchestrator"}},
	} {
		if err := c.Allow(c.as(t.Context(), c.owner), operation, req); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s of a run: %v", operation, err)
		}
		if err := c.Allow(tools, operation, req); !agency.IsCode(err, agency.CodePermissionDenied) && operation != api.ChangeTags.Name {
			t.Errorf("%s of tools: %v", operation, err)
		}
		if err := c.Allow(c.as(t.Context(), nil), operation, req); err != nil {
			t.Errorf("%s of the user: %v", operation, err)
		}
	}
}

// The run that a decision is about is the run that the operation acts on, even if its name means
// another run in between.
func TestPolicyPinsReferences(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	req := &api.RunRequest{Run: "target"}
	if err := c.Allow(c.as(t.Context(), c.owner), api.StopRun.Name, req); err != nil || req.Run != string(c.target.ID) {
		t.Errorf("the request is about %q: %v", req.Run, err)
	}
}

// What an agent may start: a table of specs, by sender and by what the configuration allows.
func TestPermission(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	shell := *c.owner
	shell.Runner = agency.Runner{Kind: agency.Shell, Name: "shell"}
	spec := func(change func(*agency.Spec)) agency.Spec {
		s := agency.Spec{Runner: agency.SpecRunner{Kind: "claude_code"}}
		change(&s)
		return s
	}
	for name, test := range map[string]struct {
		by    *agency.Run
		allow string
		spec  agency.Spec
		fine  bool
	}{
		"an agent":                  {c.owner, "", spec(func(*agency.Spec) {}), true},
		"an agent, by tools":        {nil, "", spec(func(*agency.Spec) {}), true},
		"a script":                  {c.owner, "", spec(func(s *agency.Spec) { s.Runner.Kind = agency.Shell }), false},
		"a script, by tools":        {nil, "", spec(func(s *agency.Spec) { s.Runner.Kind = agency.Shell }), false},
		"a script, allowed":         {nil, "shell", spec(func(s *agency.Spec) { s.Runner.Kind = agency.Shell }), true},
		"a script of a script":      {&shell, "", spec(func(s *agency.Spec) { s.Runner.Kind = agency.Shell }), true},
		"custom":                    {c.owner, "", spec(func(s *agency.Spec) { s.Runner.Kind, s.Runner.Name = agency.Custom, "evil" }), false},
		"custom, allowed":           {c.owner, "custom", spec(func(s *agency.Spec) { s.Runner.Kind, s.Runner.Name = agency.Custom, "evil" }), true},
		"custom, the default":       {nil, "", spec(func(s *agency.Spec) { s.Runner.Kind, s.Runner.Name = agency.Custom, "usual" }), true},
		"arguments":                 {c.owner, "", spec(func(s *agency.Spec) { s.Runner.Args = []string{"--model=x"} }), false},
		"arguments, allowed":        {c.owner, "args", spec(func(s *agency.Spec) { s.Runner.Args = []string{"--model=x"} }), true},
		"variables":                 {c.owner, "", spec(func(s *agency.Spec) { s.Env = []string{"PATH=/evil"} }), false},
		"variables, allowed":        {c.owner, "env", spec(func(s *agency.Spec) { s.Env = []string{"A=b"} }), true},
		"more permissions":          {c.owner, "", spec(func(s *agency.Spec) { s.Runner.SkipPermissions = true }), false},
		"more permissions by args":  {c.owner, "args", spec(func(s *agency.Spec) { s.Runner.Args = []string{"--permission-mode", "bypassPermissions"} }), false},
		"more permissions, allowed": {c.owner, "skip_permissions", spec(func(s *agency.Spec) { s.Runner.SkipPermissions = true }), true},
		"permissions of a script":   {&shell, "", spec(func(s *agency.Spec) { s.Runner.SkipPermissions = true }), true},
		"an orchestrator":           {c.owner, "", spec(func(s *agency.Spec) { s.Tags = []string{"orchestrator"} }), false},
		"of an orchestrator":        {c.orchestrator, "", spec(func(s *agency.Spec) { s.Tags = []string{"orchestrator"} }), true},
	} {
		cfg := *c.Config()
		cfg.Defaults.Runner = "usual"
		if test.allow != "" {
			cfg.MCP.Allow = []string{test.allow}
		}
		l := &Permission{policy: c.Policy, by: test.by, cfg: &cfg}
		err := l.CheckAsked(&test.spec)
		if err == nil {
			err = l.CheckChosen(t.Context(), &test.spec)
		}
		if fine := err == nil; fine != test.fine || err != nil && !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
		var user *Permission
		if err := user.CheckAsked(&test.spec); err != nil {
			t.Errorf("%s of the user: %v", name, err)
		}
	}
}

// The children of a run at one time are limited: live ones, those being created, and those that its
// sessions may still start.
func TestReserve(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	cfg := *c.Config()
	cfg.MCP.MaxChildren, cfg.MCP.MaxDepth = 6, 2
	l := &Permission{policy: c.Policy, by: c.owner, cfg: &cfg}
	_, first, err := l.Reserve(t.Context(), 1, "r_1") // one child is live, and the session may start three
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := l.Reserve(t.Context(), 9); got != 1 || err != nil {
		t.Errorf("there is room for %d more: %v", got, err)
	}
	_, second, err := l.Reserve(t.Context(), 1, "r_2")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Reserve(t.Context(), 1, "r_3"); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("a seventh: %v", err)
	}
	first()
	second()
	if got, _, err := l.Reserve(t.Context(), 9); got != 2 || err != nil {
		t.Errorf("afterwards there is room for %d: %v", got, err)
	}
	deep := &Permission{policy: c.Policy, by: c.target, cfg: &cfg} // two generations below the user's runs
	if _, _, err := deep.Reserve(t.Context(), 1); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("a third generation: %v", err)
	}
	if got := fmt.Sprint(c.children.making); got != "map[]" {
		t.Errorf("left over: %s", got)
	}
}
