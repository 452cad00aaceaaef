package tmux_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agency/internal/tmux"
)

var servers atomic.Int64

// server is a private tmux server of one test: its own socket, home and configuration.
type server struct {
	*tmux.Tmux
	home   string
	socket string
	path   string // of the real tmux
}

// newServer prepares a server that the first Start will start, with config as the user's
// ~/.tmux.conf.
func newServer(t testing.TB, config string) *server {
	t.Helper()
	path, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	// Not t.TempDir: the path of a socket may have little more than 100 bytes.
	home, err := os.MkdirTemp("", "at")
	if err != nil {
		t.Fatal(err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	write(t, filepath.Join(home, ".tmux.conf"), config)
	s := &server{home: home, path: path, socket: fmt.Sprintf("agency-test-%d-%d", os.Getpid(), servers.Add(1))}
	s.Tmux = tmux.New(s.socket, 10*time.Second)
	s.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMUX_TMPDIR=" + home, "TERM=xterm", "TMUX=/nowhere,1,0", "TMUX_PANE=%9"}
	t.Cleanup(func() { _ = s.command("kill-server").Run() })
	return s
}

// command runs the real tmux on the test's server, for commands that the package does not offer.
func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.path, append([]string{"-u", "-L", s.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMUX_TMPDIR=" + s.home, "TERM=xterm"}
	return cmd
}

func (s *server) ask(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// start starts a session in the server's home, and fails the test when that fails.
func (s *server) start(t *testing.T, name string, argv ...string) (pane string) {
	t.Helper()
	pane, err := s.Start(context.Background(), tmux.Session{Name: name, Dir: s.home, Argv: argv, Width: 80, Height: 24})
	if err != nil {
		t.Fatal(err)
	}
	return pane
}

// eventually waits until ok returns true, or fails the test and names the condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents waits for a file whose last line is "end", and returns it.
func contents(t *testing.T, path string) string {
	t.Helper()
	var text string
	eventually(t, path+" is written", func() bool {
		data, err := os.ReadFile(path)
		text = string(data)
		return err == nil && strings.HasSuffix(text, "end\n")
	})
	return strings.TrimSuffix(text, "end\n")
}

// The socket is the one that tmux itself uses, wherever its path comes from.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.start(t, "agency_r_1", "/bin/cat")
	if got, want := s.Socket(), s.ask(t, "display-message", "-p", "#{socket_path}"); got != want {
		t.Errorf("got %s, tmux says %s", got, want)
	}
	if path := tmux.New("/some/where", time.Second).Socket(); path != "/some/where" {
		t.Errorf("got %s", path)
	}
}
