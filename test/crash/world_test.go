package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency/test/fixture"
)

// world is one agency to disturb. A run "other" works in it beside the one under test.
type world struct {
	processes

	// also returns what else is wrong in a settled world, and again is the command that the test
	// repeats; nil for an operation that has none.
	also  func() []string
	again []string
}

// processes are all that belongs to an agency; they are held at points, and killed.
type processes struct{ client }

// client calls agency, and knows what it prints.
type client struct {
	folder

	process *exec.Cmd     // of the command under test
	ended   chan struct{} // closed when it has ended
	output  bytes.Buffer
}

// folder is where an agency lives: its data, its repository and its configuration.
type folder struct {
	t testing.TB
	f *fixture.Fixture
}

// runView is a run as ls shows it.
type runView struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Status    string     `json:"status"`
	Attempt   int        `json:"attempt"`
	Mode      string     `json:"mode"`
	ErrorCode string     `json:"error_code"`
	Error     string     `json:"error"`
	Branch    string     `json:"branch"`
	Worktree  string     `json:"worktree_path"`
	Dir       string     `json:"run_dir"`
	RemovedAt *time.Time `json:"removed_at"`
}

func (r *runView) final() bool {
	return r.State == "completed" || r.State == "failed" || r.State == "killed"
}

func newWorld(t testing.TB) *world { return newWorldAt(t, "") }

// newWorldAt returns a world whose data root is in a folder of its own.
func newWorldAt(t testing.TB, data string) *world { return newWorldWith(t, data, "") }

// newWorldWith returns a world whose data root is in a folder, and whose repository is one; empty
// for folders of the fixture.
func newWorldWith(t testing.TB, data, repo string) *world {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("the process table is read from /proc")
	}
	for _, tool := range []string{"tmux", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	f, err := fixture.Make(bin, repo)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{processes: processes{client: client{folder: folder{t: t, f: f}}}}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if data != "" {
		f.Data = filepath.Join(data, "agency")
		f.Env = append(f.Env, "AGENCY_HOME="+f.Data)
	}
	agent, err := filepath.Abs("../agent/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	realGit, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.path("shim"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.script("shim/git", shim)
	w.script("broken", "#!/nonexistent/interpreter\n")
	w.script("fragile", "#!/bin/sh\nexec "+agent+" \"$@\"\n")
	config := fmt.Sprintf("[tmux]\nsocket = %q\n[defaults]\nrunner = \"scripted\"\n", f.Socket)
	for name, program := range map[string]string{"scripted": agent, "broken": w.path("broken"), "fragile": w.path("fragile")} {
		config += fmt.Sprintf("[runners.custom.%s]\nexec = %q\ndefault_args = [\"{prompt_file}\"]\n", name, program)
	}
	w.write("config.toml", config)
	for i, kv := range f.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			f.Env[i] = "PATH=" + w.path("shim") + ":" + path
		}
	}
	f.Env = append(f.Env, "AGENCY_KILLPOINT="+w.path("killpoint"), "REAL_GIT="+realGit)
	w.must("run", "--name", "other", "--prompt", "ask still there?")
	w.await("the start of another run, which could pass a kill point later", func() bool {
		beats, _ := filepath.Glob(filepath.Join(f.Data, "runs", "*", "attempts", "1", "wrapper", "heartbeat"))
		return len(beats) > 0
	})
	return w
}

// configure adds to the configuration.
func (w *folder) configure(text string) {
	w.t.Helper()
	before, err := os.ReadFile(w.path("config.toml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("config.toml", string(before)+text)
}

// must runs an agency command that has to succeed.
func (w *client) must(args ...string) string {
	w.t.Helper()
	r := w.f.Agency(args...)
	if r.Exit != 0 {
		w.t.Fatalf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// start runs an agency command in the background, as the client that may die.
func (w *client) start(args []string) {
	w.process = exec.Command(filepath.Join(bin, "agency"), args...)
	w.process.Dir, w.process.Env, w.process.WaitDelay = w.f.Repo, w.f.Env, time.Second
	w.process.Stdout, w.process.Stderr = &w.output, &w.output
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.ended = make(chan struct{})
	go func() { _ = w.process.Wait(); close(w.ended) }()
}

// awaitClient waits for the end of the client, if there is one.
func (w *client) awaitClient() {
	w.t.Helper()
	if w.process == nil {
		return
	}
	select {
	case <-w.ended:
	case <-time.After(90 * time.Second):
		_ = w.process.Process.Kill()
		<-w.ended
		w.t.Errorf("the client hung: %s", w.output.String())
	}
}

// await waits for a condition.
func (w *client) await(what string, met func() bool) {
	w.t.Helper()
	w.awaitFor(time.Minute, what, met)
}

func (w *client) awaitFor(limit time.Duration, what string, met func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain for %s; the client said: %s", what, w.said())
		}
	}
}

// said returns the output of the client after its end.
func (w *client) said() string {
	select {
	case <-w.ended:
		return w.output.String()
	default:
		return "nothing yet"
	}
}

// data decodes the data of an agency command's answer.
func (w *client) data(into any, args ...string) error {
	r := w.f.Agency(append(args, "--json")...)
	var envelope struct {
		OK    bool            `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &envelope); err != nil || !envelope.OK {
		return fmt.Errorf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
	}
	return json.Unmarshal(envelope.Data, into)
}

func (w *client) runs() ([]runView, error) {
	var list struct {
		Runs []runView `json:"runs"`
	}
	err := w.data(&list, "ls", "--all", "--all-repos")
	return list.Runs, err
}

// target returns the newest run of that name, or nil.
func (w *client) target() *runView {
	w.t.Helper()
	runs, err := w.runs()
	if err != nil {
		w.t.Fatal(err)
	}
	var found *runView
	for i := range runs {
		if runs[i].Name == "target" {
			found = &runs[i]
		}
	}
	return found
}

// run returns the newest run of a name, which must exist.
func (w *client) run(name string) *runView {
	w.t.Helper()
	runs, err := w.runs()
	if err != nil {
		w.t.Fatal(err)
	}
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Name == name {
			return &runs[i]
		}
	}
	w.t.Fatalf("there is no run %s", name)
	return nil
}

// hold starts a command in the background and returns when a process of it is held at the point,
// until release.
func (w *processes) hold(point string, command ...string) {
	w.t.Helper()
	w.write("killpoint", point+" hold")
	w.start(command)
	w.awaitHit(point)
}

// awaitHit waits until a process reaches the armed point.
func (w *processes) awaitHit(point string) {
	w.t.Helper()
	w.await("the point "+point, func() bool { _, err := os.Lstat(w.path("killpoint.hit")); return err == nil })
}

func (w *processes) release() {
	w.t.Helper()
	if err := os.Remove(w.path("killpoint.hit")); err != nil {
		w.t.Fatal(err)
	}
}

// newest returns the id of the newest run by its folder, which needs no daemon; empty when there is
// only "other".
func (w *client) newest() string {
	dirs, _ := filepath.Glob(filepath.Join(w.f.Data, "runs", "r_*"))
	if len(dirs) < 2 {
		return ""
	}
	return filepath.Base(dirs[len(dirs)-1])
}

// hasWork reports whether the agent's work is in the run's worktree, in a snapshot of it or in what
// landed.
func (w *client) hasWork(r *runView) bool {
	if data, err := os.ReadFile(filepath.Join(r.Worktree, "work.txt")); err == nil {
		return string(data) == "precious\n"
	}
	refs := w.f.Command("", "git", "for-each-ref", "--format=%(refname)", "refs/agency/snapshots/"+r.ID, "refs/agency/landings/*/source")
	for ref := range strings.FieldsSeq(refs.Stdout) {
		if w.f.Command("", "git", "show", ref+":work.txt").Stdout == "precious\n" {
			return true
		}
	}
	return false
}

func has(list []string, want string) bool {
	return slices.Contains(list, want)
}

// killDaemons kills all daemons, and waits until they are gone.
func (w *processes) killDaemons() {
	w.t.Helper()
	pids := w.daemons()
	w.kill(pids)
	w.awaitDeath(pids)
}

// awaitDeath waits until processes are gone.
func (w *client) awaitDeath(pids []int) {
	w.t.Helper()
	for _, pid := range pids {
		w.await(fmt.Sprintf("the death of %d", pid), func() bool { return !fixture.Lives(pid) })
	}
}

func (w *folder) writeJSON(path string, v any) {
	w.t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// lockFree reports whether no process holds a kernel lock on a file.
func lockFree(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
