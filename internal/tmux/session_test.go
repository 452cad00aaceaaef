package tmux_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/tmux"
)

func TestWithoutServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	if ok, err := s.Exists(ctx, "agency_r_1"); ok || err != nil {
		t.Errorf("Exists = %v, %v", ok, err)
	}
	if got, err := s.Sessions(ctx); err != nil || len(got) != 0 || got == nil {
		t.Errorf("Sessions = %#v, %v", got, err)
	}
	if err := s.Kill(ctx, "agency_r_1"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Kill: %v", err)
	}
	if _, err := s.Attached(ctx, "agency_r_1"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Attached: %v", err)
	}
	if _, err := s.Capture(ctx, "agency_r_1", "%0"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Capture: %v", err)
	}

	// A killed server leaves a socket on which no process listens.
	s.start(t, "agency_r_1", "/bin/cat")
	s.ask(t, "kill-server")
	eventually(t, "the server is gone", func() bool { return s.command("list-sessions").Run() != nil })
	if ok, err := s.Exists(ctx, "agency_r_1"); ok || err != nil {
		t.Errorf("after kill-server: Exists = %v, %v", ok, err)
	}
}

// A server can have no sessions: the user can configure that, and every server is in that state for
// a moment before it ends.
func TestServerWithoutSessions(t *testing.T) {
	t.Parallel()
	s := newServer(t, "set -g exit-empty off\n")
	ctx := context.Background()
	pane := s.start(t, "agency_r_1", "/bin/cat")
	if err := s.Kill(ctx, "agency_r_1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(ctx, "agency_r_1"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Kill: %v", err)
	}
	if _, err := s.Capture(ctx, "agency_r_1", pane); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Capture: %v", err)
	}
	if _, err := s.Attached(ctx, "agency_r_1"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("Attached: %v", err)
	}
	if ok, err := s.Exists(ctx, "agency_r_1"); ok || err != nil {
		t.Errorf("Exists = %v, %v", ok, err)
	}
	if terminals, err := s.Terminals(ctx); err != nil || len(terminals) != 0 {
		t.Errorf("Terminals = %v, %v", terminals, err)
	}
	s.start(t, "agency_r_1", "/bin/cat")
}

func TestUnreachableServerIsAnError(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	broken := tmux.New(filepath.Join(file, "socket"), 10*time.Second)
	broken.Env = s.Env
	if _, err := broken.Sessions(context.Background()); err == nil {
		t.Error("a server that cannot be reached reads as one without sessions")
	}
}

func TestTargetsAreExact(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	for _, name := range []string{"agency_r_10", "mine", "agency_r_2"} {
		s.start(t, name, "/bin/cat")
	}
	if got, err := s.Sessions(ctx); err != nil || !cmp.Equal(got, []string{"agency_r_10", "agency_r_2"}) {
		t.Errorf("Sessions = %v, %v", got, err)
	}
	for _, name := range []string{"agency_r_1", "agency", "agency_*", "", "=agency_r_10", "agency_r_10:", "agency_r_10:0.0", "$0", "%0"} {
		if ok, err := s.Exists(ctx, name); ok || err != nil {
			t.Errorf("Exists(%q) = %v, %v", name, ok, err)
		}
		if err := s.Kill(ctx, name); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
			t.Errorf("Kill(%q): %v", name, err)
		}
	}
	if ok, err := s.Exists(ctx, "agency_r_10"); !ok || err != nil {
		t.Errorf("Exists = %v, %v", ok, err)
	}
	for _, name := range []string{"agency_r_10", "agency_r_2", "mine"} {
		if err := s.Kill(ctx, name); err != nil {
			t.Errorf("Kill(%q): %v", name, err)
		}
		if ok, err := s.Exists(ctx, name); ok || err != nil {
			t.Errorf("after Kill: Exists(%q) = %v, %v", name, ok, err)
		}
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	pane := s.start(t, "agency_r_1", "/bin/sh", "-c", `i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "line $i"; done; printf '\033[31mré🙂d\033[0m'; exec cat`)
	eventually(t, "the screen is drawn", func() bool {
		screen, err := s.Capture(ctx, "agency_r_1", pane)
		return err == nil && strings.Contains(screen, "ré🙂d")
	})
	got, err := s.Capture(ctx, "agency_r_1", pane)
	if err != nil || !strings.HasPrefix(got, "line 38\n") || strings.Count(got, "\n") != 24 {
		t.Errorf("got %d rows, want the 24 from line 38: %q, %v", strings.Count(got, "\n"), got, err)
	}
	if strings.ContainsRune(got, 0x1b) || !strings.HasSuffix(got, "ré🙂d\n") {
		t.Errorf("got %q", got)
	}
	if got, err := s.CaptureStyled(ctx, "agency_r_1", pane); err != nil || !strings.Contains(got, "\x1b[31mré🙂d") || !strings.Contains(got, "line 38\n") {
		t.Errorf("CaptureStyled = %q, %v", got, err)
	}
	text, screen, err := s.CaptureScreen(ctx, "agency_r_1", pane, 10)
	if err != nil || !strings.HasPrefix(text, "line 28\n") || !strings.Contains(text, "\x1b[31mré🙂d") || !screen.Live ||
		screen.Width != 80 || screen.Height != 24 || screen.Above != 10 || screen.Cursor == nil || *screen.Cursor != (agency.ScreenCursor{Column: 5, Row: 23}) {
		t.Errorf("CaptureScreen = %q, %+v, %v", text, screen, err)
	}
	if _, err := s.Capture(ctx, "agency_r_1", "%999"); !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		t.Errorf("a pane that does not exist: %v", err)
	}
	for _, bad := range []string{"", "agency_r_1", "%", "%1;kill-server", "=agency_r_1:", "%1\n"} {
		if _, err := s.Capture(ctx, "agency_r_1", bad); err == nil {
			t.Errorf("Capture took %q for a pane", bad)
		}
		if _, err := s.CaptureStyled(ctx, "agency_r_1", bad); err == nil {
			t.Errorf("CaptureStyled took %q for a pane", bad)
		}
	}
}

// The next server uses the same pane ids again, so a pane is named together with its session.
func TestCaptureOfAnotherSession(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	own := s.start(t, "agency_r_1", "/bin/sh", "-c", "echo mine; exec cat")
	other := s.start(t, "agency_r_10", "/bin/sh", "-c", "echo secret; exec cat")
	s.ask(t, "split-window", "-t", "=agency_r_1:", "exec cat") // by the user: the pane is no longer the current one
	s.ask(t, "new-window", "-t", "=agency_r_1:", "exec cat")
	eventually(t, "both screens are drawn", func() bool {
		first, err1 := s.Capture(ctx, "agency_r_1", own)
		second, err2 := s.Capture(ctx, "agency_r_10", other)
		return errors.Join(err1, err2) == nil && strings.HasPrefix(first, "mine\n") && strings.HasPrefix(second, "secret\n")
	})
	for _, at := range [][2]string{{"agency_r_1", other}, {"agency_r_10", own}, {"agency_r_2", own}, {"agency_r_", own}, {"", own}, {"agency_*", own}, {"$0", own}} {
		for name, capture := range map[string]func(context.Context, string, string) (string, error){"Capture": s.Capture, "CaptureStyled": s.CaptureStyled} {
			if got, err := capture(ctx, at[0], at[1]); got != "" || !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
				t.Errorf("%s of %q: %q, %v", name, at, got, err)
			}
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	s.start(t, "agency_r_1", "/bin/cat")
	s.start(t, "agency_r_10", "/bin/cat")
	attached := func(name string, want int) func() bool {
		return func() bool {
			got, err := s.Attached(ctx, name)
			return err == nil && got == want
		}
	}
	if !attached("agency_r_1", 0)() {
		t.Error("attached before a client came")
	}

	caller := []string{"PATH=/nowhere", "HOME=" + s.home, "TERM=xterm", "TMUX_TMPDIR=/nowhere", "LC_ALL=C.UTF-8"}
	argv := []string{s.path, "-S", s.Socket(), "attach-session", "-t", "=agency_r_1"}
	cmd := s.command()
	cmd.Path, cmd.Args, cmd.Env = argv[0], argv, caller
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = terminal.WriteTo(discard{}) }() // until the client's end closes it
	eventually(t, "the client is attached", attached("agency_r_1", 1))

	// Inside tmux, the same client switches. TMUX of the pane names its server.
	inside := append(caller, "TMUX="+s.ask(t, "display-message", "-p", "-t", "=agency_r_1:", "#{socket_path},#{pid},0"))
	argv = []string{s.path, "-S", s.Socket(), "switch-client", "-t", "=agency_r_10"}
	move := s.command()
	move.Path, move.Args, move.Env = argv[0], argv, inside
	if out, err := move.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	eventually(t, "the client has moved", attached("agency_r_10", 1))

	s.ask(t, "detach-client", "-s", "=agency_r_10")
	if err := cmd.Wait(); err != nil {
		t.Errorf("attached client: %v", err)
	}
	_ = terminal.Close()
	eventually(t, "no client is attached", attached("agency_r_10", 0))
}

// The socket that attach uses must be the one that tmux itself used for the sessions.
func TestSocketPath(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.start(t, "agency_r_1", "/bin/cat")
	want := s.ask(t, "display-message", "-p", "-t", "=agency_r_1:", "#{socket_path}")
	if got := s.Socket(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
