package inspect

import (
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/tui"
	"agency/internal/tui/page"
)

// NewTUI returns the command agency tui.
func NewTUI(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use:     "tui",
		Short:   "Show all runs on the whole terminal, and act on them by keys",
		GroupID: "inspect",
		Long: `Shows all runs by how much they need you, with what the terminal of one of them
shows, live. A key does what a command does: a and r answer a permission, i replies, enter attaches
and tmux's detach comes back, w goes to the next run that needs you. ? shows all keys, and
q leaves; the runs go on.

A run is looked at as it is: its terminal keeps its size. NO_COLOR=1 keeps colours away.`,
		Example: "  agency tui",
		Args:    command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		switch {
		case d.JSON:
			return agency.Errorf(agency.CodeUsage, "agency tui draws on a terminal, and has no --json").WithHint("agency ls --watch --json")
		case !d.OnTerminal() || !term.Foreground(d.Terminal):
			return agency.Errorf(agency.CodeUsage, "agency tui needs a terminal").WithHint("agency ls --watch")
		case d.Getenv("TERM") == "dumb":
			return agency.Errorf(agency.CodeUsage, "agency tui draws on the whole terminal, and one with TERM=dumb cannot show that").WithHint("agency ls --watch")
		}
		return showTUI(cmd, d)
	})
}

// showTUI shows the dashboard. While it has the terminal, nothing else writes there.
func showTUI(cmd *cobra.Command, d *command.Deps) error {
	client, err := d.Client()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	away := make(chan string)
	tell := func(text string) {
		select {
		case away <- text:
		case <-ctx.Done():
		}
	}
	d.Waits = func(string) (over func()) {
		tell("it was stopped; this goes on when it is started again")
		return func() { tell("") }
	}
	to := d.Err
	d.Err = io.Discard
	defer func() { d.Err = to }()
	return tui.Run(ctx, tui.Options{
		Daemon: page.DaemonOf(client), In: d.In, Out: d.Terminal, Env: d.Env, Dir: d.Dir, Config: d.CallerConfig(), Now: d.Now, Away: away, Runner: config.ParseRunner,
		Command: func(args ...string) *exec.Cmd {
			if d.ConfigPath != "" {
				args = append([]string{"--config", d.CallerConfig()}, args...)
			}
			c := exec.CommandContext(ctx, program, args...)
			c.Env, c.Dir = d.Env, d.Dir
			return c
		},
	})
}
