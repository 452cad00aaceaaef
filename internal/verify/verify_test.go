package verify_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/supervisor"
	"agency/internal/verify"
)

// record is a repository with one run and the record of its checks, in memory. A check is run by
// the function of its name.
type record struct {
	verify.Git // the methods that no test needs

	run      agency.Run
	tree     string // of the commit that is checked
	touched  []string
	checks   []agency.Check // of the target; none is E_NO_CHECKS
	verdicts map[string][]agency.Verdict
	ran      []string // the names of the checks that ran
	known    map[agency.CheckKey]agency.CheckResult
	newest   map[string]agency.CheckResult
	shown    map[string]bool
	flag     string
}

func (r *record) KnownCheck(_ context.Context, key agency.CheckKey) (*agency.CheckResult, error) {
	if known, ok := r.known[key]; ok {
		return &known, nil
	}
	return nil, nil //nolint:nilnil // as the interface wants it
}

func (r *record) RecordCheck(_ context.Context, key agency.CheckKey, _ agency.RunID, v *agency.CheckResult) error {
	r.known[key], r.newest[v.Name] = *v, *v
	return nil
}

func (r *record) ChecksOf(context.Context, agency.RunID) ([]agency.CheckResult, error) {
	all := []agency.CheckResult{}
	for _, v := range r.newest {
		all = append(all, v)
	}
	return all, nil
}

func (r *record) ShownLogs(context.Context) (map[string]bool, error) { return r.shown, nil }

func (r *record) ResolveCommit(_ context.Context, _, ref string) (string, error) {
	return "commit of " + ref, nil
}
func (r *record) Tree(context.Context, agency.Repo, string) (string, error) { return r.tree, nil }
func (r *record) ForkPoint(context.Context, agency.Repo, string, string) (string, error) {
	return "fork", nil
}

func (r *record) Touched(context.Context, agency.Repo, string, string, []string) ([]string, error) {
	return slices.Clone(r.touched), nil
}

func (r *record) Inspect(context.Context, agency.Repo, string, string) (agency.GitFacts, error) {
	return agency.GitFacts{Branch: r.run.Branch, Head: "head"}, nil
}

func (r *record) Worktree(_ context.Context, _ agency.Repo, path string) (string, error) {
	return path, nil
}
func (r *record) CheckOut(context.Context, agency.Repo, string, string, string) error { return nil }

func (r *record) PlanChecks(_ context.Context, _ agency.Repo, target, _ string) (*supervisor.CheckPlan, error) {
	if len(r.checks) == 0 {
		return nil, agency.Errorf(agency.CodeNoChecks, "none")
	}
	return &supervisor.CheckPlan{Project: agency.Project{Checks: slices.Clone(r.checks)}, Target: target}, nil
}

func (r *record) Prepare(context.Context, *supervisor.CheckPlan, supervisor.Preparing) error {
	return nil
}
func (r *record) Resolve(context.Context, string) (*agency.Run, error) { return &r.run, nil }
func (r *record) Of(context.Context, *agency.Run) (agency.Repo, error) {
	return agency.Repo{Fingerprint: "repo"}, nil
}

func (r *record) FlagChecks(_ context.Context, _ agency.RunID, reason string) error {
	r.flag = reason
	return nil
}

func (r *record) UnflagChecks(context.Context, agency.RunID) error {
	r.flag = ""
	return nil
}

// runCheck gives a check the next of its verdicts, or a pass when it has none left.
func (r *record) runCheck(_ context.Context, c agency.SetupCommand) (agency.Verdict, string, error) {
	name := c.Argv[1]
	r.ran = append(r.ran, name)
	left := r.verdicts[name]
	if len(left) == 0 || left[0] == agency.CheckPassed {
		r.verdicts[name] = left[min(1, len(left)):]
		return agency.CheckPassed, "", nil
	}
	r.verdicts[name] = left[1:]
	return left[0], "did not pass", nil
}

// newBench returns a verifier of a target with these checks.
func newBench(t *testing.T, names ...string) (*record, *verify.Verifier) {
	t.Helper()
	r := &record{
		run:  agency.Run{ID: "r_work", Name: "work", Branch: "agency/work", Worktree: "/work"},
		tree: "tree", verdicts: map[string][]agency.Verdict{}, known: map[agency.CheckKey]agency.CheckResult{}, newest: map[string]agency.CheckResult{},
	}
	for _, name := range names {
		r.checks = append(r.checks, agency.Check{Name: name, Run: []string{"sh", name}})
	}
	return r, verify.New(verify.Deps{
		Store: r, Git: r, Projects: r, Runs: r, Repos: r, Marks: r, RunCheck: r.runCheck,
		Target:   func(context.Context, *agency.Run, agency.Repo, string) (string, error) { return "main", nil },
		EndTree:  func(context.Context, []string, time.Duration) (int, error) { return 0, nil },
		Parallel: func() int { return 1 },
		Home:     t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: time.Now, Random: func([]byte) {},
	})
}

var environ = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "TOKEN=1"}

// verified verifies the work of the run, and returns the verdicts as words.
func verified(t *testing.T, v *verify.Verifier, req verify.Request) string {
	t.Helper()
	req.Run = "work"
	if req.Env == nil {
		req.Env = environ
	}
	done, err := v.Verify(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{}
	for _, c := range done.Checks {
		word := c.Name + " " + string(c.Verdict)
		if c.Cached {
			word += " cached"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// A check runs once on the same files, with the same configuration and environment. The environment
// is what a check gets of it: neither the terminal nor what is denied to agents.
func TestNothingIdenticalRunsTwice(t *testing.T) {
	t.Parallel()
	r, v := newBench(t, "test", "lint")
	r.verdicts["lint"] = []agency.Verdict{agency.CheckFailed}
	for _, step := range []struct {
		what   string
		change func(req *verify.Request)
		want   string
	}{
		{"the first time", nil, "test pass, lint fail"},
		{"again", nil, "test pass cached, lint fail cached"},
		{"in another terminal", func(req *verify.Request) { req.Env = append(slices.Clone(environ), "TERM=dumb", "SSH_TTY=/dev/pts/1") }, "test pass cached, lint fail cached"},
		{"with another variable", func(req *verify.Request) { req.Env = append(slices.Clone(environ), "CC=clang") }, "test pass, lint pass"},
		{"without a variable that is denied", func(req *verify.Request) { req.Deny = []string{"TOKEN"} }, "test pass, lint pass"},
		{"as one was before that was never given", func(req *verify.Request) {
			req.Env, req.Deny = append(slices.Clone(environ), "TOKEN=2"), []string{"TOKEN"}
		}, "test pass cached, lint pass cached"},
		{"with --no-cache", func(req *verify.Request) { req.NoCache = true }, "test pass, lint pass"},
		{"other files", func(*verify.Request) { r.tree = "other" }, "test pass, lint pass"},
		{"another check", func(*verify.Request) { r.checks[0].Run = []string{"sh", "test", "-v"} }, "test pass, lint pass cached"},
	} {
		req := verify.Request{}
		if step.change != nil {
			step.change(&req)
		}
		if got := verified(t, v, req); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

// What is no verdict on the work, a timeout or a check that cannot run, is found anew each time. A
// check may be tried again, and one that passes then is flaky.
func TestVerdictsThatDoNotLast(t *testing.T) {
	t.Parallel()
	r, v := newBench(t, "slow", "missing")
	r.checks[1].Run = []string{"no-such-program"}
	r.verdicts["slow"] = []agency.Verdict{agency.CheckTimedOut}
	if got := verified(t, v, verify.Request{}); got != "slow timeout, missing broken" {
		t.Error(got)
	}
	if got := verified(t, v, verify.Request{}); got != "slow pass, missing broken" {
		t.Error(got)
	}
	_, _, output, _, err := v.Log(t.Context(), "work", "missing", 0)
	if err != nil || !strings.Contains(output, "no-such-program") {
		t.Errorf("the log of a check that cannot run: %q, %v", output, err)
	}

	r.checks = []agency.Check{{Name: "flaky", Run: []string{"sh", "flaky"}, Retries: 2}}
	r.verdicts["flaky"], r.ran = []agency.Verdict{agency.CheckFailed}, nil
	if got := verified(t, v, verify.Request{}); got != "flaky pass" || len(r.ran) != 2 || r.newest["flaky"].Runs != 2 {
		t.Errorf("%s after %d runs, recorded as %+v", got, len(r.ran), r.newest["flaky"])
	}
}

// A run is flagged while a check does not pass, and one check that passes takes the flag of another
// not away.
func TestFlag(t *testing.T) {
	t.Parallel()
	r, v := newBench(t, "test", "lint")
	r.verdicts["lint"] = []agency.Verdict{agency.CheckFailed}
	verified(t, v, verify.Request{})
	if r.flag != "check lint did not pass" {
		t.Errorf("flagged %q", r.flag)
	}
	if got := verified(t, v, verify.Request{Check: "test"}); got != "test pass cached" || r.flag == "" {
		t.Errorf("after one check, %s, flagged %q", got, r.flag)
	}
	verified(t, v, verify.Request{NoCache: true})
	if r.flag != "" {
		t.Errorf("still flagged %q", r.flag)
	}
	_, err := v.Verify(t.Context(), verify.Request{Run: "work", Check: "tset", Env: environ})
	if e := agency.AsError(err); e.Code != agency.CodeCheckNotFound || !strings.Contains(e.Hint, "did you mean test?") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
}

// What is about to land passes when all checks do, or when there are none. Work that changes what
// they run needs an approval.
func TestPass(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what     string
		verdict  agency.Verdict
		touched  []string
		approved bool
		code     agency.Code // empty for none
	}{
		{"a pass", agency.CheckPassed, nil, false, ""},
		{"a failure", agency.CheckFailed, nil, false, agency.CodeCheckFailed},
		{"a timeout", agency.CheckTimedOut, nil, false, agency.CodeCheckTimeout},
		{"changed checks", agency.CheckPassed, []string{"test.sh", "x\x1b"}, false, agency.CodeApprovalRequired},
		{"changed checks that the user approves", agency.CheckPassed, []string{"test.sh"}, true, ""},
	} {
		r, v := newBench(t, "test")
		r.verdicts["test"], r.touched = []agency.Verdict{test.verdict}, test.touched
		subject := &verify.Subject{Run: "r_work", Target: "main", TargetCommit: "target", Commit: "candidate", Merged: true}
		err := v.Pass(t.Context(), subject, &verify.Request{Env: environ, Approve: test.approved})
		if test.code == "" && err != nil || test.code != "" && !agency.IsCode(err, test.code) {
			t.Errorf("%s: %v, want %q", test.what, err, test.code)
		}
		if err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %q can change the terminal", test.what, err)
		}
	}
	_, v := newBench(t)
	if err := v.Pass(t.Context(), &verify.Subject{}, &verify.Request{}); err != nil {
		t.Errorf("a target without checks: %v", err)
	}
}

// Only the logs of checks are collected, and only old ones that no run shows.
func TestCollect(t *testing.T) {
	t.Parallel()
	r, v := newBench(t)
	dir := filepath.Join(v.Home, "checks")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name+".log") }
	for name, age := range map[string]time.Duration{"c_old": 48 * time.Hour, "c_shown": 48 * time.Hour, "c_new": time.Hour, "setup-repo": 48 * time.Hour} {
		then := time.Now().Add(-age)
		if err := os.WriteFile(path(name), []byte("four"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path(name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	r.shown = map[string]bool{path("c_shown"): true}
	for _, apply := range []bool{false, true} {
		if logs, bytes, err := v.Collect(t.Context(), 0, apply); logs != 1 || bytes != 4 || err != nil {
			t.Errorf("%d logs of %d bytes, %v", logs, bytes, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{path("c_new"), path("c_shown"), path("setup-repo")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}
