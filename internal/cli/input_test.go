package cli_test

import (
	"context"
	"os"
	"testing"
	"time"

	"agency"
	"agency/internal/cli/clitest"
)

// Ctrl-C ends a command that waits for its standard input.
func TestCtrlCWhileReading(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "--prompt", "-"},
		{"send", "x", "-"},
		{"api", "run.list", "-"},
		{"session", "plan", "-"},
		{"session", "start", "-"},
		{"session", "start", "--agents", "shell:2", "--prompt", "-"},
		{"session", "create", "--agents", "-"},
		{"session", "create", "--file", "-"},
	} {
		b := clitest.New(t)
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		b.App.In = in
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() { ended <- b.App.Main(ctx, args) }()
		if _, err := out.WriteString("begun"); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case got := <-ended:
			if got != agency.ExitInterrupted || b.Err.Len() != 0 {
				t.Errorf("%q: got %d and %q", args, got, b.Err.String())
			}
		case <-time.After(time.Minute):
			t.Errorf("%q goes on after Ctrl-C", args)
		}
		_ = out.Close() // which ends the process that was left behind
		_ = in.Close()
	}
}
