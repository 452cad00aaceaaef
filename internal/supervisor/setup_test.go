package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// project writes the repository's agency.toml.
func (w *world) project(text string) {
	w.t.Helper()
	mustWrite(w.t, filepath.Join(w.root, agency.ProjectFile), text)
}

// trust trusts what the repository wants.
func (w *world) trust() {
	w.t.Helper()
	req := supervisor.TrustRequest{Dir: w.root, Default: "HEAD"}
	_, t, err := w.sup.Projects.Trust(w.t.Context(), req)
	if err == nil {
		_, t, err = w.sup.Projects.Grant(w.t.Context(), req, t.Hash)
	}
	if err != nil || !t.Trusted {
		w.t.Fatalf("got %+v, %v", t, err)
	}
}

const makeDeps = "[scripts]\nsetup = [\"make\", \"deps\"]\ntimeout = \"2m\"\n"

func TestSetupNeedsTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project(makeDeps)
	_, err := w.createRun(t.Context(), w.request("one"))
	wantCode(t, err, agency.CodeTrustRequired)
	if e := agency.AsError(err); !strings.Contains(e.Message, "run make deps") || e.Details["hash"] == "" {
		t.Errorf("got %q, %v", e.Message, e.Details)
	}
	w.wantNothing()
	req := w.request("without")
	req.Spec.NoSetup = true
	if _, err := w.createRun(t.Context(), req); err != nil || len(w.setups) != 0 {
		t.Errorf("got %v, %v", w.setups, err)
	}

	w.trust()
	r := w.create("one")
	if len(w.setups) != 1 {
		t.Fatalf("got %v", w.setups)
	}
	c := w.setups[0]
	if !slices.Equal(c.Argv[1:], []string{"deps"}) || c.Dir != r.Worktree || c.Timeout.Minutes() != 2 || c.Log != filepath.Join(r.Dir, "setup.log") {
		t.Errorf("got %+v", c)
	}
	for _, want := range []string{"AGENCY_RUN_ID=" + string(r.ID), "AGENCY_BRANCH=" + r.Branch, "AGENCY_BASE_COMMIT=" + baseCommit, "HOME=/home/u", c.Mark} {
		if !slices.Contains(c.Env, want) {
			t.Errorf("%s is not in %v", want, c.Env)
		}
	}
	if slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, "AGENCY_TOKEN=") }) {
		t.Error("the setup has the token of the runner")
	}

	// Changed content is refused, and nothing is trusted again.
	w.project(makeDeps + "# a word more\n")
	_, err = w.createRun(t.Context(), w.request("two"))
	wantCode(t, err, agency.CodeTrustRequired)
	if !strings.Contains(err.Error(), "not what was trusted before") {
		t.Errorf("got %v", err)
	}
	w.project(makeDeps)
	if _, n, err := w.sup.Projects.Revoke(t.Context(), w.root); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	_, err = w.createRun(t.Context(), w.request("two"))
	wantCode(t, err, agency.CodeTrustRequired)
}

// Only what was shown is trusted, and the content of a file that the setup names counts.
func TestTrustIsOfTheContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("[scripts]\nsetup = [\"sh\", \"-e\", \"./a/../setup.sh\"]\n")
	mustWrite(t, filepath.Join(w.root, "setup.sh"), "echo 1")
	req := supervisor.TrustRequest{Dir: w.root, Default: "HEAD"}
	_, shown, err := w.sup.Projects.Trust(t.Context(), req)
	if err != nil || len(shown.Files) != 1 || shown.Files[0] != (agency.SetupFile{Path: "setup.sh", Content: "echo 1"}) {
		t.Fatalf("got %+v, %v", shown, err)
	}
	mustWrite(t, filepath.Join(w.root, "setup.sh"), "echo 2")
	_, _, err = w.sup.Projects.Grant(t.Context(), req, shown.Hash)
	wantCode(t, err, agency.CodeInvalidState)
	w.trust()
	// The new worktree decides: it has no such file, so nothing is run and nothing is left.
	_, err = w.createRun(t.Context(), w.request("one"))
	wantCode(t, err, agency.CodeTrustRequired)
	if len(w.setups) != 0 {
		t.Errorf("got %v", w.setups)
	}
	w.wantNothing()
}

func TestFailedSetupKeepsTheWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project(makeDeps)
	w.trust()
	w.runSetup = func(agency.SetupCommand) error { return errors.New("failed with exit 3") }
	_, err := w.createRun(t.Context(), w.request("one"))
	wantCode(t, err, agency.CodeSetupFailed)
	r, err := w.sup.Records.Resolve(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	a := r.Attempt
	if a.State != agency.Failed || a.EndedBy != agency.EndedBySetupFailed || a.ErrorCode != agency.CodeSetupFailed || a.ConversationID != "" || r.RemovedAt != nil {
		t.Errorf("got removed %v and %+v", r.RemovedAt, a)
	}
	if _, err := os.Stat(r.Worktree); err != nil || w.git.branches[r.Branch] == "" || w.sup.Observer.LiveRuns() != 0 {
		t.Errorf("worktree: %v, branches %v", err, w.git.branches)
	}
	// A restart of the daemon leaves it unchanged.
	w.restart()
	if now := w.run(r.ID); now.RemovedAt != nil || now.Attempt.State != agency.Failed {
		t.Errorf("got %+v", now)
	}

	// resume resumes the run. The setup is repeated until it has succeeded once.
	resume := func(noSetup bool) error {
		req := w.resumeRequest("one")
		req.NoSetup = noSetup
		_, err := w.sup.ResumeRun(t.Context(), req)
		return err
	}
	wantCode(t, resume(false), agency.CodeSetupFailed)
	if len(w.setups) != 2 {
		t.Errorf("got %d setups", len(w.setups))
	}
	w.runSetup = nil
	if err := resume(false); err != nil || len(w.setups) != 3 {
		t.Fatalf("got %d setups, %v", len(w.setups), err)
	}
	if now := w.run(r.ID); now.Attempt.Number != 3 || now.Attempt.State != agency.Running {
		t.Errorf("got %+v", now.Attempt)
	}
	if _, err := w.sup.StopRun(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if err := resume(false); err != nil || len(w.setups) != 3 {
		t.Errorf("after it worked: got %d setups, %v", len(w.setups), err)
	}
}

// A user who declined the setup is not asked again.
func TestResumeWithoutSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project(makeDeps)
	w.trust()
	w.runSetup = func(agency.SetupCommand) error { return errors.New("failed with exit 3") }
	_, err := w.createRun(t.Context(), w.request("one"))
	wantCode(t, err, agency.CodeSetupFailed)
	if _, _, err := w.sup.Projects.Revoke(t.Context(), w.root); err != nil {
		t.Fatal(err)
	}
	_, err = w.sup.ResumeRun(t.Context(), w.resumeRequest("one"))
	wantCode(t, err, agency.CodeTrustRequired)
	if !strings.Contains(agency.AsError(err).Hint, "agency trust --run one") {
		t.Errorf("got %q", agency.AsError(err).Hint)
	}
	req := w.resumeRequest("one")
	req.NoSetup = true
	for range 2 {
		if _, err := w.sup.ResumeRun(t.Context(), req); err != nil || len(w.setups) != 1 {
			t.Fatalf("got %d setups, %v", len(w.setups), err)
		}
		if _, err := w.sup.StopRun(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		req.NoSetup = false
	}
}

func TestCopyAndLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("[worktree]\ncopy = [\".env\", \"nothing\", \"there\"]\nlink = [\"node_modules\"]\n")
	mustWrite(t, filepath.Join(w.root, ".env"), "SECRET=1")
	mustWrite(t, filepath.Join(w.root, "there"), "mine")
	mustWrite(t, filepath.Join(w.root, "node_modules/pkg"), "x")
	w.trust()
	w.git.AddWorktreeFunc = nil
	w.scaffold = func(root string, _ []byte, _ time.Time) error {
		mustWrite(t, filepath.Join(root, "there"), "committed")
		return nil
	}
	r := w.create("one")
	if got := mustRead(t, filepath.Join(r.Worktree, ".env")); got != "SECRET=1" {
		t.Errorf("got %q", got)
	}
	if target, err := os.Readlink(filepath.Join(r.Worktree, "node_modules")); err != nil || target != filepath.Join(w.root, "node_modules") {
		t.Errorf("got %q, %v", target, err)
	}
	if got := mustRead(t, filepath.Join(r.Worktree, "there")); got != "committed" {
		t.Errorf("got %q", got)
	}
	if len(w.warnings) != 2 || !strings.Contains(w.warnings[0], "nothing was not copied: it is not in") || !strings.Contains(w.warnings[1], "there was not copied: it is in the worktree already") {
		t.Errorf("got %q", w.warnings)
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("[project]\nparallel = false\n")
	one := w.create("one")
	_, err := w.createRun(t.Context(), w.request("two"))
	wantCode(t, err, agency.CodeRepoBusy)
	if _, err := w.sup.StopRun(t.Context(), string(one.ID)); err != nil {
		t.Fatal(err)
	}
	w.create("two")
	_, err = w.sup.ResumeRun(t.Context(), w.resumeRequest("one"))
	wantCode(t, err, agency.CodeRepoBusy)
	// A restart of the live run is not a second run.
	req := w.resumeRequest("two")
	req.Restart = true
	if _, err := w.sup.ResumeRun(t.Context(), req); err != nil {
		t.Error(err)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := func(name string) string {
		target, _ := os.Readlink(filepath.Join(w.root, "agent_runs", name))
		return target
	}
	w.create("before")
	if _, err := os.Stat(filepath.Join(w.root, "agent_runs")); !os.IsNotExist(err) {
		t.Errorf("a window that was not configured: %v", err)
	}
	w.project("[project]\nagent_runs = true\n")
	one := w.ended("one")
	two := w.ended("two")
	if link(one.Handle) != one.Dir || link(two.Handle) != two.Dir || link("latest") != two.Handle {
		t.Errorf("got %q, %q, latest %q", link(one.Handle), link(two.Handle), link("latest"))
	}
	// Files that agency did not make stay; a folder that is a link is left alone.
	mustWrite(t, filepath.Join(w.root, "agent_runs/.template/state.json"), "{}")
	if err := os.Symlink("/somewhere", filepath.Join(w.root, "agent_runs/mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "two"}); err != nil {
		t.Fatal(err)
	}
	if link(two.Handle) != "" || link("latest") != one.Handle || link("mine") != "/somewhere" {
		t.Errorf("after rm: got %q, latest %q, mine %q", link(two.Handle), link("latest"), link("mine"))
	}
	external := t.TempDir()
	if err := errors.Join(os.RemoveAll(filepath.Join(w.root, "agent_runs")), os.Symlink(external, filepath.Join(w.root, "agent_runs"))); err != nil {
		t.Fatal(err)
	}
	w.ended("three")
	if entries, err := os.ReadDir(external); err != nil || len(entries) != 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// A setup that cannot run in a new worktree is reported before there is one.
func TestSetupProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filepath.Join(w.root, "setup.sh")
	w.project("[scripts]\nsetup = [\"./setup.sh\"]\n")
	repo, err := w.git.Discover(t.Context(), w.root)
	if err != nil {
		t.Fatal(err)
	}
	problem := func() string { return w.sup.Projects.SetupProblem(t.Context(), repo, "HEAD", []string{"./setup.sh"}) }
	if got := problem(); !strings.Contains(got, "setup.sh is not there") {
		t.Errorf("without the file: %q", got)
	}
	mustWrite(t, script, "#!/bin/sh\n")
	_, trust, err := w.sup.Projects.Trust(t.Context(), supervisor.TrustRequest{Dir: w.root, Base: "HEAD"})
	if got := problem(); err != nil || got != trust.Problem || !strings.Contains(got, "chmod +x setup.sh") {
		t.Errorf("not executable: %q and %q, %v", got, trust.Problem, err)
	}
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := problem(); got != "" {
		t.Errorf("as it should be: %q", got)
	}
	if got := w.sup.Projects.SetupProblem(t.Context(), repo, "HEAD", []string{"make", "deps"}); got != "" {
		t.Errorf("a program: %q", got)
	}
}
