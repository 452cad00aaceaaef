package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// timeout bounds every wait. OpenCode alone needs most of a minute to start where many programs
// share two cores.
const timeout = 2 * time.Minute

// fixture is an agency with one agent, a repository and a model, all in one folder.
type fixture struct {
	t      *testing.T
	binary string
	dir    string
	repo   string
	env    []string
	model  *modelserver.Server
}

func newFixture(t *testing.T, binary string, a agent, scenario modelserver.Scenario) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("", "agency") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	model := modelserver.Start(scenario)
	t.Cleanup(model.Close)
	f := &fixture{t: t, binary: binary, dir: dir, repo: filepath.Join(dir, "repo"), model: model}
	for _, folder := range []string{"home", "tmp", "repo"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "config.toml"), fmt.Sprintf("[tmux]\nsocket = %q\n\n[runners.%s]\nexec = %q\n", f.tmuxSocket(), a.table(), a.program))
	f.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color",
		"HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"AGENCY_HOME=" + filepath.Join(dir, "data"), "AGENCY_CONFIG=" + filepath.Join(dir, "config.toml"),
	}, a.home(t, dir, f.repo, model.URL)...)
	f.output("git", "init", "--quiet", "--initial-branch=main")
	f.output("git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", "commit", "--quiet", "--allow-empty", "--message=start")
	t.Cleanup(func() {
		_, _ = f.command("tmux", "-S", f.tmuxSocket(), "kill-server")
		_, _ = f.command(binary, "daemon", "stop")
	})
	return f
}

// addConfig adds to the configuration.
func (f *fixture) addConfig(text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, "config.toml")
	before, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	write(f.t, path, string(before)+"\n"+text)
}

func (f *fixture) tmuxSocket() string { return filepath.Join(f.dir, "tmux") }

// command runs a program in the repository and returns what it printed.
func (f *fixture) command(name string, args ...string) (string, error) {
	// Clean-up runs when the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.t.Context()), 2*timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = f.repo, f.env, 500*time.Millisecond
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out), err
}

// output is command for a program that must succeed.
func (f *fixture) output(name string, args ...string) string {
	f.t.Helper()
	out, err := f.command(name, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// agency runs an agency command with --json, decodes the answer's data into data unless that is
// nil, and returns the exit status.
func (f *fixture) agency(data any, args ...string) int {
	f.t.Helper()
	out, err := f.command(f.binary, append([]string{"--json"}, args...)...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	envelope := api.Envelope{Data: data}
	if err := json.Unmarshal([]byte(out), &envelope); err != nil {
		f.t.Fatalf("agency %s: %v in\n%s", strings.Join(args, " "), err, out)
	}
	if err := envelope.Err(); err != nil {
		f.t.Fatalf("agency %s: %v", strings.Join(args, " "), err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

const task = "Write a greeting into greeting.txt."

// start starts a run on the task, which a prompt file holds.
func (f *fixture) start(a agent, flags ...string) api.Run {
	f.t.Helper()
	prompt := filepath.Join(f.dir, "task.md")
	write(f.t, prompt, task+"\n")
	var created api.RunResponse
	f.agency(&created, slices.Concat([]string{"run", "--runner", a.runner, "--prompt-file", prompt}, flags)...)
	run := created.Run
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.explain(run)
		}
		_, _ = f.command(f.binary, "stop", string(run.ID)) // refused when it has ended
	})
	return run
}

// toolsFile returns the path of the file in which an agent may find the tools of agency mcp.
func (f *fixture) toolsFile() string { return filepath.Join(f.dir, "mcp.json") }

// explain logs everything known about a run whose test failed.
func (f *fixture) explain(run api.Run) {
	for _, args := range [][]string{{"show"}, {"events", "--run"}, {"logs"}, {"logs", "--stderr"}} {
		out, err := f.command(f.binary, append(args, string(run.ID))...)
		f.t.Logf("agency %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	screen, err := f.command("tmux", "-S", f.tmuxSocket(), "capture-pane", "-p", "-t", "="+run.Session+":")
	f.t.Logf("screen: %v\n%s", err, screen)
	for i, r := range f.model.Requests() {
		f.t.Logf("request %d: %s %s, side %t, turn %d", i, r.Method, r.Path, r.Side, r.Turn)
	}
}

// wait waits until a run is settled and returns it with the exit status of agency wait.
func (f *fixture) wait(run api.Run, flags ...string) (api.Run, int) {
	f.t.Helper()
	var waited api.WaitRunsResponse
	exit := f.agency(&waited, append([]string{"wait", string(run.ID), "--timeout", timeout.String()}, flags...)...)
	return waited.Runs[0], exit
}

// asked waits for the request of a turn and returns everything that the user said until then.
func (f *fixture) asked(turn int) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), timeout)
	defer cancel()
	request, err := f.model.Await(ctx, func(r modelserver.Request) bool { return !r.Side && r.Subagent == "" && r.Turn == turn })
	if err != nil {
		f.t.Fatalf("turn %d: %v", turn, err)
	}
	return request.Heard
}

// checkAlive checks that processes of the run can be found at all, without which checkGone would
// prove nothing.
func (f *fixture) checkAlive(id agency.RunID) {
	f.t.Helper()
	if runtime.GOOS == "linux" && len(f.processes(id)) == 0 {
		f.t.Error("no process carries the mark of the run")
	}
}

// checkGone checks that the run left no process behind.
func (f *fixture) checkGone(id agency.RunID) {
	f.t.Helper()
	for _, process := range f.processes(id) {
		f.t.Errorf("left behind: %s", process)
	}
}

// processes finds the processes that carry the run's mark in their environment. Only Linux shows
// it.
func (f *fixture) processes(id agency.RunID) []string {
	f.t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		f.t.Fatal(err)
	}
	var found []string
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "AGENCY_RUN_ID="+string(id)) {
			continue // it has ended, or belongs to another user
		}
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found = append(found, fmt.Sprintf("%s %q", filepath.Dir(path), argv))
	}
	return found
}
