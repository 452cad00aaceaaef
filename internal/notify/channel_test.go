package notify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/notify"
	"agency/test/fixture"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out file")
	tell := notify.NewCommand("tell", []string{"sh", "-c", `cat > "$1"`, "sh", out})
	if err := tell.Send(t.Context(), fullNotice()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	want := `{"id":"n_1","msg_type":"worker.error","title":"fix-login failed","body":"exit 1 \u003cb\u003e","run_id":"r_1","run_name":"fix-login",` +
		`"repo":"/src","tags":["worker"],"payload":{"attempt":1},"at":"2026-11-22T09:00:00Z"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCommandFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"/nonexistent/program"}, "fork/exec /nonexistent/program: no such file or directory"},
		{[]string{"sh", "-c", "echo 'no route' >&2; exit 3"}, "exit status 3: no route"},
		{[]string{"sh", "-c", "exit 4"}, "exit status 4"},
		{[]string{"sh", "-c", "kill -9 $$"}, "signal: killed"},
		{[]string{"true", "; exit 0"}, ""}, // reads nothing
	} {
		err := notify.NewCommand("tell", tt.argv).Send(t.Context(), fullNotice())
		if fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%q: %v, want %q", tt.argv, err, tt.want)
		}
	}
	err := notify.NewCommand("tell", []string{"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' y >&2; exit 1"}).Send(t.Context(), fullNotice())
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("a long complaint: %.200v", err)
	}
}

// A program is ended at its timeout, with everything that it started.
func TestCommandEnds(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hangs":      `sleep 600 & echo $! > "$1"; wait`,
		"background": `sleep 600 & echo $! > "$1"`,
	} {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- notify.NewCommand("tell", []string{"sh", "-c", script, "sh", file}).Send(ctx, fullNotice())
		}()
		pid := 0
		for deadline := time.Now().Add(time.Minute); pid == 0; {
			data, _ := os.ReadFile(file)
			if text, ok := strings.CutSuffix(string(data), "\n"); ok {
				pid, _ = strconv.Atoi(text)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: it does not start", name)
			}
			time.Sleep(time.Millisecond)
		}
		if name == "hangs" {
			cancel()
		}
		if err := <-done; (name == "hangs") != errors.Is(err, context.Canceled) || name != "hangs" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		for deadline := time.Now().Add(time.Minute); fixture.Lives(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: process %d is left", name, pid)
			}
		}
	}
}

func TestDesktop(t *testing.T) {
	t.Parallel()
	n := &agency.Notice{Title: "--help\x1b[2J", Body: "<img src=x> & \\n\nnext"}
	want := []string{"notify-send", "--app-name=agency", "--", "--help[2J", "&lt;img src=x&gt; &amp; \\\\n\nnext"}
	if got := notify.DesktopArgv("linux", n); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	n.Body = `" & (do shell script "id") & "`
	got := notify.DesktopArgv("darwin", n)
	if got[0] != "osascript" || !slices.Equal(got[len(got)-3:], []string{"agency", "--help[2J", n.Body}) {
		t.Errorf("%q", got)
	}
	for _, arg := range got[:len(got)-3] {
		if strings.Contains(arg, "shell") || strings.Contains(arg, "help") {
			t.Errorf("%q is part of the script", arg)
		}
	}
}

// Whatever an agent says, the arguments are short text without control characters.
func TestDesktopArguments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &agency.Notice{Title: rapid.String().Draw(t, "title"), Body: strings.Repeat(rapid.String().Draw(t, "body"), rapid.IntRange(1, 100).Draw(t, "times"))}
		for _, os := range []string{"linux", "darwin"} {
			for _, arg := range notify.DesktopArgv(os, n) {
				if !utf8.ValidString(arg) || len(arg) > 6000 || strings.ContainsAny(arg, "\x00\x1b\x07\r") {
					t.Fatalf("%q", arg)
				}
			}
		}
	})
}

func TestBell(t *testing.T) {
	t.Parallel()
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close(); _ = tty.Close() }()
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(paths ...string) *notify.Bell {
		return notify.NewBell("bell", func(context.Context) ([]string, error) { return paths, nil })
	}
	if err := at(plain, tty.Name()).Send(t.Context(), fullNotice()); err != nil {
		t.Fatal(err)
	}
	if err := screen.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	if n, err := screen.Read(got); err != nil || string(got[:n]) != "\a" {
		t.Errorf("the terminal shows %q, %v", got[:n], err)
	}
	if err := at(plain).Send(t.Context(), fullNotice()); err == nil || !notify.Final(err) {
		t.Errorf("a file: %v", err)
	}
	if data, err := os.ReadFile(plain); err != nil || len(data) != 0 {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if err := at().Send(t.Context(), fullNotice()); err == nil || err.Error() != "no terminal is attached to the tmux server" || !notify.Final(err) {
		t.Errorf("no terminal: %v", err)
	}
	failing := notify.NewBell("bell", func(context.Context) ([]string, error) { return nil, errors.New("no tmux") })
	if err := failing.Send(t.Context(), fullNotice()); err == nil || notify.Final(err) {
		t.Errorf("no tmux: %v", err)
	}
}
