package runner_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"headless", "interactive"} {
		for script, want := range map[string]agency.Exit{
			"exit 0":          {ExitCode: 0},
			"exit 7":          {ExitCode: 7},
			"kill -TERM $$":   {ExitCode: 143, Signal: "SIGTERM"},
			"kill -9 $$":      {ExitCode: 137, Signal: "SIGKILL"},
			"exec no-such-it": {ExitCode: 127},
		} {
			t.Run(mode+"/"+script, func(t *testing.T) {
				t.Parallel()
				f := prepare(t, script)
				f.launch.Headless = mode == "headless"
				f.begin(true)
				if got := f.wait(); got != want.ExitCode {
					t.Errorf("the wrapper's exit code is %d, want %d", got, want.ExitCode)
				}
				got := f.exit()
				if got.ExitCode != want.ExitCode || got.Signal != want.Signal || got.EndedBy != agency.EndedByRunner || got.LeftBehind != 0 {
					t.Errorf("record %+v, want %+v", got, want)
				}
				start := f.started()
				if start.TTY != (mode == "interactive") || start.Runner.PID != got.PID || start.Runner.StartTicks == 0 {
					t.Errorf("start record %+v", start)
				}
				code, _ := os.ReadFile(filepath.Join(f.launch.AttemptDir, "exit_code.txt"))
				if strings.TrimSpace(string(code)) != itoa(want.ExitCode) {
					t.Errorf("exit_code.txt holds %q", code)
				}
				if locked, err := runner.Locked(f.launch.AttemptDir); locked || err != nil {
					t.Errorf("held after the end: %v, %v", locked, err)
				}
				if _, err := os.Stat(filepath.Join(f.launch.AttemptDir, "launch.json")); !os.IsNotExist(err) {
					t.Errorf("the launch file is still there: %v", err)
				}
			})
		}
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	script := func(t *testing.T, f *fixture, text string, mode os.FileMode) {
		f.launch.Argv = []string{filepath.Join(f.dir, "program")}
		// A process that begins meanwhile would hold the file open for a moment, and Linux runs no
		// program that is open for writing.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if err := os.WriteFile(f.launch.Argv[0], []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *fixture)
		code   int
		words  string
	}{
		"missing":        {func(_ *testing.T, f *fixture) { f.launch.Argv = []string{"/no/such"} }, 127, "the program /no/such does not exist"},
		"no interpreter": {func(t *testing.T, f *fixture) { script(t, f, "#!/no/such/sh\n", 0o700) }, 127, "interpreter"},
		"not executable": {func(t *testing.T, f *fixture) { script(t, f, "#!/bin/sh\n", 0o600) }, 126, "may not be executed"},
		"no program":     {func(t *testing.T, f *fixture) { script(t, f, "just text\n", 0o700) }, 126, "#! line"},
		"no folder":      {func(_ *testing.T, f *fixture) { f.launch.Dir = "/no/such/folder" }, 126, "the folder /no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepare(t, "")
			c.change(t, f)
			d := f.listen(0)
			f.begin(true)
			if got := f.wait(); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			exit := f.exit()
			if exit.EndedBy != agency.EndedByStartFailed || exit.ExitCode != c.code || !strings.Contains(exit.Error, c.words) {
				t.Errorf("record %+v, want %d and %q", exit, c.code, c.words)
			}
			for u := receive(t, "the exit", d.updates); u.Exit == nil; u = receive(t, "the exit", d.updates) {
			}
			if start, err := runner.ReadStart(f.launch.AttemptDir); start != nil || err != nil {
				t.Errorf("a start was recorded: %+v, %v", start, err)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	f := prepare(t, `
		for fd in 0 1 2; do test -t $fd && printf 'tty%s ' $fd; done; tty; stty size; echo "term=$TERM"
		true; echo $(grep flags /proc/$$/fdinfo/0)
		trap 'stty size; exit 3' WINCH
		echo ready; while :; do sleep 0.02; done`)
	f.launch.Env = append(f.launch.Env, "TERM=dumb", "COLORTERM=truecolor")
	f.begin(true)
	f.logged("ready")
	for _, want := range []string{"tty0 tty1 tty2 /dev/pts/", "30 90", "term=tmux-256color", "flags: 0100002\r"} {
		if !strings.Contains(f.log("runner"), want) {
			t.Errorf("%q is not in %q", want, f.log("runner"))
		}
	}
	if err := pty.Setsize(f.pane, &pty.Winsize{Rows: 50, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	f.logged("50 132")
	if code := f.wait(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "the same on the pane", func() bool { return strings.Contains(f.shown.String(), "50 132") })
	if f.log("stdout") != f.log("runner") || f.log("stderr") != "" {
		t.Error("the stream logs of a terminal are not the merged one and an empty one")
	}
	if to, err := os.Readlink(filepath.Join(f.launch.AttemptDir, "logs", "runner.stdout.log")); to != "runner.log" {
		t.Errorf("runner.stdout.log leads to %q, %v", to, err)
	}
}

// The runner gets its three files and no others, whatever the wrapper itself inherited.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, headless := range []bool{false, true} {
		f := prepare(t, "")
		f.launch.Argv = []string{"/bin/ls", "-m", "/proc/self/fd"} // ls itself opens 3
		f.launch.Headless = headless
		f.begin(true)
		f.wait()
		if got := strings.TrimSpace(f.log("runner")); got != "0, 1, 2, 3" {
			t.Errorf("headless %v: files %q", headless, got)
		}
	}
}

func TestInterruptAndJobControl(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.02; done`)
	f.begin(true)
	f.logged("ready")
	f.typeKeys("\x03")
	f.logged("interrupted")
	if code := f.wait(); code != 5 {
		t.Errorf("exit code %d", code)
	}

	f = prepare(t, "exec bash --norc --noprofile -i")
	f.begin(true)
	f.typeKeys("sh -c \"echo g''o; exec sleep 100\"\r") // one process: a shell that forks with vfork would not stop
	f.logged("go\r\n")
	f.typeKeys("\x1a")
	f.logged("Stopped")
	f.typeKeys("kill %1; exit 4\rexit 4\r")
	if code := f.wait(); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

func TestHeadless(t *testing.T) {
	t.Parallel()
	f := prepare(t, `cat; echo out; echo err >&2; test -t 0 || echo "no terminal"; true; exit 5`)
	f.launch.Headless = true
	f.launch.Stdin = filepath.Join(f.dir, "prompt")
	if err := os.WriteFile(f.launch.Stdin, []byte("the prompt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.begin(false)
	if code := f.wait(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	got := map[string]string{"stdout": f.log("stdout"), "stderr": f.log("stderr")}
	want := map[string]string{"stdout": "the prompt\nout\nno terminal\n", "stderr": "err\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if merged := f.log("runner"); len(merged) != len(want["stdout"])+len(want["stderr"]) || !strings.Contains(merged, "err\n") {
		t.Errorf("the merged log is %q", merged)
	}
	if !strings.Contains(f.shown.String(), "no terminal") {
		t.Errorf("the pane shows %q", f.shown)
	}
}

// Processes and open files that the runner leaves do not keep its end from being recorded, and are
// ended.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		left   bool
	}{
		"grandchild keeps the terminal": {`sleep 100 & echo $! >child; echo said; exit 6`, true},
		"it ignores TERM":               {`(trap '' TERM HUP; echo $$ >x; sleep 100) & echo $! >child; echo said; exit 6`, true},
		"it writes on and on":           {`(while :; do echo noise; done) & echo $! >child; echo said; exit 6`, true},
		"a daemon of its own session":   {`setsid sh -c 'env -i sleep 100 </dev/null >/dev/null 2>&1 & echo $! >child'; echo said; exit 6`, true},
		"the terminal was closed":       {`echo said; exec <&- >&- 2>&-; sleep 0.1; echo 0 >child; exit 6`, false},
	} {
		for _, headless := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "/headless", false: "/interactive"}[headless], func(t *testing.T) {
				t.Parallel()
				f := prepare(t, c.script)
				f.launch.Headless = headless
				f.begin(true)
				child := f.pid("child")
				exit := f.exit()
				if exit.ExitCode != 6 || headless && (exit.LeftBehind > 0) != c.left || exit.EndedBy != agency.EndedByRunner {
					t.Errorf("record %+v, left behind: want %v", exit, c.left)
				}
				if code := f.wait(); code != 6 {
					t.Errorf("exit code %d", code)
				}
				if child != 0 && running(child) {
					t.Errorf("process %d lives on", child)
				}
				if !strings.Contains(f.log("runner"), "said") {
					t.Errorf("the log is %.100q", f.log("runner"))
				}
			})
		}
	}
}

// A program may close its terminal and open it again.
func TestTerminalOpenedAgain(t *testing.T) {
	t.Parallel()
	f := prepare(t, `exec <&- >&- 2>&-; sleep 0.1; exec </dev/tty >/dev/tty 2>&1; echo back`)
	f.begin(true)
	f.wait()
	if !strings.Contains(f.log("runner"), "back") {
		t.Errorf("the log is %q", f.log("runner"))
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	const tree = `
		setsid env -i sh -c 'echo $$ >escaped; exec sleep 100' </dev/null >/dev/null 2>&1 &
		sh -c 'trap "" TERM HUP; echo $$ >stubborn; sleep 100; sleep 100' &
		echo ready; `
	end := map[string]struct {
		do func(*fixture)
		by agency.EndedBy
	}{
		"terminated": {func(f *fixture) { f.signal(unix.SIGTERM) }, agency.EndedBySignal},
		"pane gone":  {func(f *fixture) { _ = f.pane.Close() }, agency.EndedBySessionLost},
		"time limit": {func(*fixture) {}, agency.EndedByTimeLimit},
	}
	for name, c := range end {
		for kind, script := range map[string]string{
			"obedient": tree + "wait; wait; wait",
			"stubborn": `trap : TERM HUP; ` + tree + `while :; do sleep 1; done`, // first, before any pid is known
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				f := prepare(t, script)
				f.launch.Grace = 2 * time.Second // enough for a shell to end
				if c.by == agency.EndedByTimeLimit {
					f.launch.TimeLimit = 15 * time.Second // enough for the script to get there
				}
				f.begin(true)
				pids := []int{f.pid("escaped"), f.pid("stubborn"), f.started().Runner.PID}
				c.do(f)
				exit := f.exit()
				if exit.EndedBy != c.by {
					t.Errorf("ended by %q, want %q", exit.EndedBy, c.by)
				}
				if want := map[string]string{"obedient": "SIGTERM", "stubborn": "SIGKILL"}[kind]; exit.Signal != want {
					t.Errorf("ended with %q, want %q", exit.Signal, want)
				}
				f.wait()
				for _, pid := range pids {
					if running(pid) {
						t.Errorf("process %d lives on", pid)
					}
				}
			})
		}
	}
}

// Interactive shells ignore TERM, and still need no KILL.
func TestStopOfInteractiveShell(t *testing.T) {
	t.Parallel()
	f := prepare(t, "exec bash --norc --noprofile -i")
	f.launch.Grace = time.Minute
	f.begin(true)
	f.typeKeys("echo rea''dy\r")
	f.logged("ready\r\n")
	f.signal(unix.SIGTERM)
	if exit := f.exit(); exit.Signal == "SIGKILL" || exit.EndedBy != agency.EndedBySignal {
		t.Errorf("record %+v", exit)
	}
	f.wait()
}

func TestSecondStopKills(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap "" TERM HUP; echo ready; while :; do sleep 1; done`)
	f.launch.Grace = time.Hour
	f.begin(true)
	f.logged("ready")
	// Two pending signals are merged, so it is sent until it has arrived twice.
	eventually(t, "the end", func() bool {
		f.signal(unix.SIGTERM)
		exit, err := runner.ReadExit(f.launch.AttemptDir)
		return err != nil || exit != nil
	})
	if exit := f.exit(); exit.Signal != "SIGKILL" || exit.EndedBy != agency.EndedBySignal {
		t.Errorf("record %+v", exit)
	}
	f.wait()
}

// A handler of TERM gets the time to clean up.
func TestStopIsGentle(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap 'sleep 0.2; echo tidy; exit 9' TERM; echo ready; while :; do sleep 0.02; done`)
	f.begin(true)
	f.logged("ready")
	f.signal(unix.SIGTERM)
	if exit := f.exit(); exit.ExitCode != 9 || exit.Signal != "" || exit.EndedBy != agency.EndedBySignal {
		t.Errorf("record %+v", exit)
	}
	if !strings.Contains(f.log("runner"), "tidy") {
		t.Errorf("the log is %q", f.log("runner"))
	}
	f.wait()
}

// A daemon that an agent started serves other runs, and so does what it started. A process that
// only claims to be one is ended.
func TestDaemonSurvives(t *testing.T) {
	t.Parallel()
	f := prepare(t, `
		setsid flock lock sh -c 'echo $$ >daemon; env -i sleep 100 & echo $! >below; wait' </dev/null >/dev/null 2>&1 &
		AGENCY_DAEMON=1 setsid sh -c 'echo $$ >masked; exec sleep 100' </dev/null >/dev/null 2>&1 &
		sleep 100`)
	f.begin(true)
	masked, pids := f.pid("masked"), []int{f.pid("daemon"), f.pid("below")}
	defer func() {
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}()
	f.signal(unix.SIGTERM)
	if exit := f.exit(); exit.Signal != "SIGTERM" {
		t.Errorf("record %+v", exit)
	}
	f.wait()
	for _, pid := range pids {
		if !running(pid) {
			t.Errorf("process %d was ended", pid)
		}
	}
	if running(masked) {
		t.Error("what only claims to be a daemon lives on")
	}
}

func TestKilledWrapper(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap "" HUP; setsid env -i sh -c 'echo $$ >escaped; exec sleep 100' & echo $$ >runner; while :; do sleep 1; done`)
	f.launch.Headless = true
	f.begin(false)
	start, escaped := f.started(), f.pid("escaped")
	if locked, err := runner.Locked(f.launch.AttemptDir); !locked || err != nil {
		t.Fatalf("not held while it runs: %v, %v", locked, err)
	}
	second := *f
	second.done, second.shown = make(chan struct{}), &screen{}
	second.begin(false)
	if code := second.wait(); code != 1 || !strings.Contains(second.shown.String(), "another wrapper") {
		t.Errorf("a second wrapper: exit code %d, %q", code, second.shown)
	}
	f.signal(unix.SIGKILL)
	f.wait()
	if locked, err := runner.Locked(f.launch.AttemptDir); locked || err != nil {
		t.Errorf("held by a dead wrapper: %v, %v", locked, err)
	}
	if !alive(start.Runner) {
		t.Fatal("the runner died with the wrapper, so there is nothing to test")
	}
	left, err := runner.EndTree(t.Context(), runner.Remains{Root: start.Runner, Mark: f.mark}, runner.Serving{}, 100*time.Millisecond)
	if left != 0 || err != nil {
		t.Errorf("EndTree: %d left, %v", left, err)
	}
	for _, pid := range []int{start.Runner.PID, escaped} {
		if running(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
	if exit, err := runner.ReadExit(f.launch.AttemptDir); exit != nil || err != nil {
		t.Errorf("a record without a wrapper: %+v, %v", exit, err)
	}
}

// A dead runner's children are found by their marks, even one that kept nothing of the run but its
// limits.
func TestEndTreeOfDeadRoot(t *testing.T) {
	t.Parallel()
	f := prepare(t, `
		setsid sh -c 'echo $$ >orphan; env -i sleep 100 & echo $! >below; wait' &
		(env -i setsid sh -c 'cd /; echo $$ >"$0"; exec sleep 100' $PWD/clean </dev/null >/dev/null 2>&1 &)
		echo $$ >runner; sleep 100`)
	f.launch.Headless = true
	f.begin(false)
	root := f.started().Runner
	pids := []int{f.pid("orphan"), f.pid("below"), f.pid("clean")}
	f.signal(unix.SIGKILL)
	f.wait()
	if err := runner.Signal(root, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, root.PID)
	if err := runner.Signal(root, unix.SIGKILL); err == nil {
		t.Error("a dead process took a signal")
	}
	if left, err := runner.EndTree(t.Context(), runner.Remains{Root: root, Mark: f.mark}, runner.Serving{}, time.Second); left != 0 || err != nil {
		t.Errorf("EndTree: %d left, %v", left, err)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
}

// What a dying wrapper leaves is below the tmux server until the wrapper is gone, like other runs,
// and is still ended.
func TestEndTreeBelowTheServer(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "tmux")
	server, err := net.Listen("unix", socket) // this process is the server
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	mark := fmt.Sprintf("AGENCY_TEST_MARK=dying-%d", os.Getpid()) // another test process must not find it
	begin := func() (wrapper agency.Process, agent int) {
		// The agent prints its pid itself: before its exec it does not carry the mark.
		cmd := exec.Command("sh", "-c", mark+" sh -c 'echo $$; exec sleep 100' & wait")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscan(out, &agent); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = unix.Kill(agent, unix.SIGKILL)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		if wrapper, err = runner.Identify(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		return wrapper, agent
	}
	wrapper, agent := begin()
	_, other := begin() // a run whose tmux server was started by an agent of this mark
	left, err := runner.EndTree(t.Context(), runner.Remains{Wrapper: wrapper, Mark: []string{mark}}, runner.Serving{Tmux: socket}, time.Second)
	if left != 0 || err != nil || running(agent) || !running(other) {
		t.Errorf("%d left, %v, the agent lives: %t, another run's lives: %t", left, err, running(agent), running(other))
	}
}

func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	const size = 24 << 20
	for _, headless := range []bool{false, true} {
		t.Run(map[bool]string{true: "headless", false: "interactive"}[headless], func(t *testing.T) {
			t.Parallel()
			// Random bytes: long stretches without a newline, and every control character.
			f := prepare(t, `test -t 1 && stty raw; head -c `+itoa(size)+` /dev/urandom | tee data; test -t 1 || cat data >&2`)
			f.launch.Headless = headless
			f.begin(false)
			if code := f.wait(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			want, err := os.ReadFile(filepath.Join(f.dir, "data"))
			if err != nil || len(want) != size {
				t.Fatal(len(want), err)
			}
			for _, stream := range []string{"stdout", "stderr"} {
				if stream == "stderr" && !headless {
					continue
				}
				if got := f.log(stream); sha256.Sum256([]byte(got)) != sha256.Sum256(want) {
					t.Errorf("%s: %d bytes of %d, or others", stream, len(got), size)
				}
			}
			if got := len(f.log("runner")); headless && got != 2*size {
				t.Errorf("the merged log has %d bytes of %d", got, 2*size)
			}
		})
	}
}

// A terminal that takes no output does not slow a headless runner.
func TestStuckPane(t *testing.T) {
	t.Parallel()
	f := prepare(t, `head -c 8000000 /dev/zero; echo end`)
	f.launch.Headless = true
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()
	f.beginOn(write)
	f.exit()
	if got := len(f.log("stdout")); got != 8000004 {
		t.Errorf("%d bytes in the log", got)
	}
	f.wait()
}
