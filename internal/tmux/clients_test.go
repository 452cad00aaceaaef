package tmux_test

import (
	"context"
	"os"
	"testing"

	"github.com/creack/pty"
)

// Terminals returns the terminals of all clients of the server, and none without a server.
func TestTerminals(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	if got, err := s.Terminals(ctx); err != nil || len(got) != 0 {
		t.Errorf("without a server: %q, %v", got, err)
	}
	s.start(t, "agency_r_1", "/bin/cat")
	if got, err := s.Terminals(ctx); err != nil || len(got) != 0 {
		t.Errorf("without people: %q, %v", got, err)
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
	var got []string
	eventually(t, "one terminal is there", func() bool {
		got, err = s.Terminals(ctx)
		return err == nil && len(got) == 1
	})
	if info, err := os.Stat(got[0]); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("%q is no terminal: %v", got, err)
	}
	s.ask(t, "detach-client", "-s", "=agency_r_1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("attached client: %v", err)
	}
	_ = terminal.Close()
	eventually(t, "no terminal is left", func() bool {
		got, err := s.Terminals(ctx)
		return err == nil && len(got) == 0
	})
}
