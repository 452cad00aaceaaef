// Package script_test runs the sessions in testdata/*.txtar with the real binary, real git and real
// tmux. Each has a data root, a home, a repository and a tmux server of its own.
package script_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agency"
	"agency/internal/limit"
	"agency/test/fixture"
	"agency/test/forge"
)

// bin is the folder of the binary under test.
var bin string

// TestMain runs the tests, or is one of the programs of a fake forge.
func TestMain(m *testing.M) {
	if slices.Contains(forge.Programs, filepath.Base(os.Args[0])) {
		os.Exit(forge.Main())
	}
	os.Exit(fixture.Run(m, &bin))
}

func TestScripts(t *testing.T) {
	t.Parallel()
	agent, err := filepath.Abs("../agent/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, agent) },
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"alive":      alive,
			"before":     beforeCommand,
			"fake":       fake,
			"eventually": eventually,
			"mksocket":   mksocket,
			"handle":     handle,
			"source":     source,
			"bigfile":    bigfile,
			"mkfifo":     mkfifo,
			"sigkill":    sigkill,
			"suspend":    suspend,
			"until":      until,
			"race20":     race20,
			"engine":     engine,
		},
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "tmux", "bwrap":
		_, err := exec.LookPath(name)
		return err == nil, nil
	case "cgroup": // this user may make control groups
		_, err := limit.How(agency.SandboxWorktree, agency.Resources{CPUs: 1})
		return err == nil, nil
	case "docker":
		return fixture.NoEngine() == "" && !fixture.Race, nil // agency with the race detector is not static
	case "reftable": // git knows it
		usage, _ := exec.Command("git", "init", "-h").CombinedOutput()
		return strings.Contains(string(usage), "--ref-format"), nil
	case "checkout": // not the unpacked archive of a release
		return fileExists("../../.git"), nil
	case "same-record":
		return os.Getenv("AGENCY_BEFORE_RECORD") != "older", nil
	case "root":
		return os.Getuid() == 0, nil
	case "linux":
		return filepath.Separator == '/' && fileExists("/proc/self/stat"), nil
	case "userns":
		return exec.Command("unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_inotify_instances").Run() == nil, nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// setup makes the surroundings of one script.
func setup(env *testscript.Env, agent string) error {
	f, err := fixture.Make(bin, filepath.Join(env.WorkDir, "project"))
	if err != nil {
		return err
	}
	env.Defer(func() {
		if err := f.Close(); err != nil {
			env.T().Fatal(err)
		}
	})
	config, err := os.OpenFile(f.Config, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { _ = config.Close() }()
	_, err = fmt.Fprintf(config, `
[defaults]
runner = "scripted"

[runners.custom.scripted]
exec = %q
default_args = ["{prompt_file}"]
`, agent)
	for _, kv := range f.Env {
		name, value, _ := strings.Cut(kv, "=")
		env.Setenv(name, value)
	}
	env.Setenv("AGENTS", filepath.Dir(agent)) // the folder of the scripted agents
	env.Cd = f.Repo
	return err
}

// alive PIDFILE: the process whose pid is in the file lives, or with ! does not, within ten
// seconds.
func alive(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: alive PIDFILE")
	}
	pid := pidIn(ts, args[0])
	deadline := time.Now().Add(10 * time.Second)
	for fixture.Lives(pid) == neg {
		if time.Now().After(deadline) {
			ts.Fatalf("process %d: alive is %v", pid, !neg)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// fake PROGRAM...: programs of a fake forge come first on the PATH: gh, glab, or forge, which plays
// the other users. Its repository is $WORK/origin.git.
func fake(ts *testscript.TestScript, _ bool, args []string) {
	program, err := os.Executable()
	ts.Check(err)
	dir := ts.MkAbs(ts.Getenv("WORK") + "/forge")
	ts.Check(os.MkdirAll(dir, 0o700))
	for _, name := range args {
		ts.Check(os.Symlink(program, filepath.Join(dir, name)))
	}
	ts.Setenv("PATH", dir+string(os.PathListSeparator)+ts.Getenv("PATH"))
	ts.Setenv("FORGE_STATE", filepath.Join(dir, "state.json"))
	ts.Setenv("FORGE_REPO", ts.Getenv("WORK")+"/origin.git")
}

// beforeCommand is before VAR: the path of the program of another version becomes the variable.
func beforeCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: before VAR")
	}
	program, err := before()
	ts.Check(err)
	ts.Setenv(args[0], program)
}

// source: SOURCE becomes the folder of agency's source, and go has the caches of the tests.
func source(ts *testscript.TestScript, _ bool, _ []string) {
	folder, err := filepath.Abs("../..")
	ts.Check(err)
	ts.Setenv("SOURCE", folder)
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	ts.Check(err)
	for i, path := range strings.Fields(string(out)) {
		ts.Setenv([]string{"GOCACHE", "GOMODCACHE"}[i], path)
	}
}

// handle VAR: the last line of stdout becomes the variable.
func handle(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: handle VAR")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	ts.Setenv(args[0], lines[len(lines)-1])
}

// bigfile PATH BYTES [CHARACTER]: make a file of that many bytes.
func bigfile(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: bigfile PATH BYTES [CHARACTER]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	char := "x"
	if len(args) == 3 {
		char, err = strconv.Unquote(`"` + args[2] + `"`)
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(char, n)), 0o600))
}

func mkfifo(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(path), 0o600))
	}
}

// mksocket PATH...: make a socket on which no process listens.
func mksocket(ts *testscript.TestScript, _ bool, args []string) {
	dir, err := os.MkdirTemp("", "s") // a path below the test's own folder is too long for a socket
	ts.Check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	for _, path := range args {
		short := filepath.Join(dir, "s")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short})
		ts.Check(err)
		l.SetUnlinkOnClose(false)
		ts.Check(l.Close())
		ts.Check(os.Rename(short, ts.MkAbs(path)))
	}
}

// eventually PATTERN COMMAND...: the command succeeds and its output matches, within a minute.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	deadline := time.Now().Add(time.Minute)
	for {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q does not match %s", args[1:], pattern)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pidIn returns the pid in a file.
func pidIn(ts *testscript.TestScript, file string) int {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(file)))
	ts.Check(err)
	return pid
}

// sigkill PIDFILE: kill -9.
func sigkill(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Kill(pidIn(ts, args[0]), syscall.SIGKILL))
}

// suspend PIDFILE: kill -STOP, and wait until the process is stopped.
func suspend(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(fixture.Suspend(pidIn(ts, args[0])))
}

// until PATH [TEXT]: wait until the file is not empty, or contains the text.
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: until PATH [TEXT]")
	}
	deadline := time.Now().Add(time.Minute)
	for {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && len(data) > 0 && (len(args) == 1 || strings.Contains(string(data), args[1])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not there, or without %q: %s", args[0], args[1:], data)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// race20 COMMAND...: run the command 20 times at once; all must succeed. Their output goes to the
// files race.N.
func race20(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: race20 COMMAND...")
	}
	const n = 20
	failed := make(chan string, n)
	for i := range n {
		go func() {
			cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
			cmd.Dir = ts.MkAbs(".")
			for _, name := range []string{"ROOT", "HOME", "AGENCY_HOME", "AGENCY_CONFIG", "PATH", "TERM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} {
				cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
			}
			out, err := cmd.CombinedOutput()
			if err == nil {
				err = os.WriteFile(ts.MkAbs(fmt.Sprintf("race.%d", i)), out, 0o600)
			}
			if err != nil {
				failed <- fmt.Sprintf("%v: %s", err, out)
				return
			}
			failed <- ""
		}()
	}
	for range n {
		if problem := <-failed; problem != "" {
			ts.Fatalf("%s", problem)
		}
	}
}
