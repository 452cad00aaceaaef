package runner_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

// TestMain lets the test binary act as the wrapper, like `agency wrapper LAUNCH`, and as a program
// that it marks, like `agency marked MARK PROGRAM`.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "marked" {
		os.Exit(runner.Marked(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 3 && os.Args[1] == "hold" {
		os.Exit(runner.Hold(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 3 && os.Args[1] == "wrapper" {
		os.Exit(runner.Main(os.Args[2], os.Stdin, os.Stdout, runner.Parts{Speak: wordsSpeaker}))
	}
	if len(os.Args) == 3 && os.Args[1] == "knock" {
		knock(os.Args[2])
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "chatter" {
		chatter(os.Args[2], os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// timeout bounds every wait. Some of these programs only end after a grace of seconds, and a machine
// can be busy with others meanwhile.
const timeout = 5 * time.Minute

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

// fixture is one attempt under a wrapper process of its own.
type fixture struct {
	t      testing.TB
	launch agency.Launch
	dir    string // a scratch folder for the script
	mark   []string
	cmd    *exec.Cmd
	pane   *os.File // the other side of the wrapper's terminal; nil without one
	shown  *screen
	alone  bool // without a daemon
	done   chan struct{}
	code   int
}

type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// prepare returns an attempt that runs a script with sh and its arguments.
func prepare(t testing.TB, script string, args ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	attempt := filepath.Join(dir, "attempts", "1")
	if err := os.MkdirAll(attempt, 0o700); err != nil {
		t.Fatal(err)
	}
	id := agency.RunID("r_" + strings.ReplaceAll(dir, "/", "_")) // marks of attempts of different tests must differ
	return &fixture{
		t: t, dir: dir, shown: &screen{}, done: make(chan struct{}), mark: agency.AttemptMark(id, 1),
		launch: agency.Launch{
			RunID: id, Attempt: 1, Token: "secret", RunnerKind: agency.Shell,
			Argv:       append([]string{"/bin/sh", "-c", script, "runner"}, args...),
			Env:        append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, agency.AttemptMark(id, 1)...),
			Dir:        dir,
			AttemptDir: attempt,
			Socket:     filepath.Join(dir, "s"),
			Lock:       filepath.Join(dir, "lock"),
			Grace:      5 * time.Second,
		},
	}
}

// begin starts the wrapper, in a terminal of its own when it has a pane.
func (f *fixture) begin(withPane bool) {
	f.t.Helper()
	if withPane {
		f.beginOn(nil)
	} else {
		f.beginOn(f.shown)
	}
}

// beginOn starts the wrapper with stdout instead of its terminal.
func (f *fixture) beginOn(stdout io.Writer) {
	f.t.Helper()
	if _, err := os.Stat(f.launch.Socket); err != nil && !f.alone {
		f.listen(0)
	}
	data, err := json.Marshal(f.launch)
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.launch.AttemptDir, "launch.json") // where the wrapper takes its lock
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.cmd = exec.Command(os.Args[0], "wrapper", path)
	f.cmd.Env = append(os.Environ(), "TERM=tmux-256color")
	if stdout == nil {
		f.pane, err = pty.StartWithSize(f.cmd, &pty.Winsize{Rows: 30, Cols: 90})
		if err == nil {
			// Non-blocking, so that closing works during a read.
			fd, dupErr := unix.FcntlInt(f.pane.Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err := errors.Join(dupErr, unix.SetNonblock(fd, true), f.pane.Close()); err != nil {
				f.t.Fatal(err)
			}
			f.pane = os.NewFile(uintptr(fd), "pane")
			pane := f.pane
			go func() { _, _ = bufio.NewReader(pane).WriteTo(f.shown) }()
		}
	} else {
		f.cmd.Stdout = stdout
		err = f.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		_ = f.cmd.Wait()
		f.code = f.cmd.ProcessState.ExitCode()
	}()
	f.t.Cleanup(func() {
		_ = f.cmd.Process.Signal(unix.SIGTERM)
		_ = f.cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-f.done:
		case <-time.After(timeout):
			_ = f.cmd.Process.Kill()
			f.t.Error("the wrapper did not end")
		}
		if f.pane != nil {
			_ = f.pane.Close()
		}
	})
}

func (f *fixture) signal(sig unix.Signal) { _ = f.cmd.Process.Signal(sig) }

// wait waits for the wrapper's end and returns its exit code.
func (f *fixture) wait() int {
	f.t.Helper()
	select {
	case <-f.done:
	case <-time.After(timeout):
		f.t.Fatalf("the wrapper does not end; it shows %q", f.shown)
	}
	return f.code
}

// exit waits for the exit record.
func (f *fixture) exit() *agency.Exit {
	f.t.Helper()
	var exit *agency.Exit
	eventually(f.t, "the exit record", func() bool {
		var err error
		if exit, err = runner.ReadExit(f.launch.AttemptDir); err != nil {
			f.t.Fatal(err)
		}
		return exit != nil
	})
	return exit
}

// started waits for the start record.
func (f *fixture) started() *agency.Start {
	f.t.Helper()
	var start *agency.Start
	eventually(f.t, "the start record", func() bool {
		var err error
		if start, err = runner.ReadStart(f.launch.AttemptDir); err != nil {
			f.t.Fatal(err)
		}
		return start != nil
	})
	return start
}

// log returns the present content of a log.
func (f *fixture) log(stream string) string {
	name := map[string]string{"runner": "runner.log", "stdout": "runner.stdout.log", "stderr": "runner.stderr.log"}[stream]
	data, _ := os.ReadFile(filepath.Join(f.launch.AttemptDir, "logs", name))
	return string(data)
}

// logged waits until the log contains a text.
func (f *fixture) logged(text string) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%q in the log", text), func() bool { return strings.Contains(f.log("runner"), text) })
}

// file waits for a file in the scratch folder that ends in a newline, and returns its text without
// the newline.
func (f *fixture) file(name string) string {
	f.t.Helper()
	var text string
	eventually(f.t, "the file "+name, func() bool {
		data, _ := os.ReadFile(filepath.Join(f.dir, name))
		text = string(data)
		return strings.HasSuffix(text, "\n")
	})
	return strings.TrimSpace(text)
}

// pid waits for a file that contains a pid.
func (f *fixture) pid(name string) int {
	f.t.Helper()
	pid, err := strconv.Atoi(f.file(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return pid
}

func (f *fixture) typeKeys(keys string) {
	f.t.Helper()
	if _, err := f.pane.WriteString(keys); err != nil {
		f.t.Fatal(err)
	}
}

// running reports whether a process runs and is not a zombie.
func running(pid int) bool {
	p, err := runner.Identify(pid)
	return err == nil && alive(p)
}

// alive reports whether a process lives, as far as the kernel can be asked.
func alive(p agency.Process) bool {
	alive, err := runner.Alive(p)
	return alive && err == nil
}

// gone waits until a process has ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the end of process %d", pid), func() bool { return !running(pid) })
}

// fakeDaemon accepts wrapper connections on a socket.
type fakeDaemon struct {
	server  *http.Server
	links   chan *runner.Link
	updates chan agency.WrapperUpdate
	hellos  chan agency.WrapperHello
}

// listen starts a daemon that accepts all wrappers, or answers each with a status.
func (f *fixture) listen(status int) *fakeDaemon {
	f.t.Helper()
	_ = os.Remove(f.launch.Socket)
	listener, err := net.Listen("unix", f.launch.Socket)
	if err != nil {
		f.t.Fatal(err)
	}
	d := &fakeDaemon{
		links: make(chan *runner.Link, 16), updates: make(chan agency.WrapperUpdate, 256), hellos: make(chan agency.WrapperHello, 16),
	}
	var served sync.WaitGroup
	d.server = &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/wrapper" || r.Header.Get("Upgrade") != "agency-wrapper" {
			http.Error(rw, "not found", http.StatusNotFound)
			return
		}
		if status != 0 {
			d.hellos <- agency.WrapperHello{}
			http.Error(rw, "no", status)
			return
		}
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: agency-wrapper\r\n\r\n"))
		link := runner.NewLink(conn, "")
		served.Go(func() {
			hello, err := link.Hello(context.Background())
			if err != nil {
				_ = link.Close()
				return
			}
			d.hellos <- hello
			d.links <- link
			_ = link.Serve(func(u agency.WrapperUpdate) error { d.updates <- u; return nil })
		})
	})}
	go func() { _ = d.server.Serve(listener) }()
	f.t.Cleanup(func() {
		_ = d.server.Close()
		for len(d.links) > 0 {
			_ = (<-d.links).Close()
		}
	})
	return d
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(timeout):
		t.Fatalf("timed out waiting for %s", what)
		panic("unreachable")
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// raw returns the content of a file in the scratch folder.
func (f *fixture) raw(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}
