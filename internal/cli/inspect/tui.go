package inspect

import (
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/tui"
	"agency/internal/tui/menu"
	"agency/internal/tui/page"
)

// tuiOptions are the flags and dependencies of agency tui.
type tuiOptions struct {
	*command.Deps

	plain bool
}

// NewTUI returns the command agency tui.
func NewTUI(d *command.Deps) *cobra.Command {
	o := &tuiOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "tui",
		Short:   "Show all runs on the whole terminal, and act on them with keys",
		GroupID: "inspect",
		Long: `Shows all runs, those that need you first, beside the live terminal of one of
them. A key does what a command does: a and r answer a permission, i replies, enter attaches (tmux's
detach key returns), and w goes to the next run that needs you. ? shows all keys, and q quits; the
runs continue. On a terminal, agency alone does the same.

The terminal of a run keeps its size. NO_COLOR=1 turns colours off. With --plain, for screen readers
and slow connections, agency only appends rows, and you choose by numbers.`,
		Example: "  agency tui\n  agency tui --plain",
		Args:    command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.plain, "plain", false, "append rows and choose by numbers, instead of drawing on the whole terminal")
	return cmd
}

func (o *tuiOptions) run(cmd *cobra.Command, _ []string) error {
	if o.InSandbox() {
		return agency.Errorf(agency.CodePermissionDenied, "agency tui does not work in a sandbox").WithHint("agency ls")
	}
	switch {
	case o.JSON:
		return agency.Errorf(agency.CodeUsage, "agency tui draws on a terminal, and has no --json").WithHint("agency ls --watch --json")
	case o.plain:
		return showMenu(cmd, o.Deps)
	case !o.OnTerminal() || !term.Foreground(o.Terminal):
		return agency.Errorf(agency.CodeUsage, "agency tui needs a terminal").WithHint("agency tui --plain")
	case o.Getenv("TERM") == "dumb":
		return agency.Errorf(agency.CodeUsage, "agency tui draws on the whole terminal, and one with TERM=dumb cannot show that").WithHint("agency tui --plain")
	}
	return ShowTUI(cmd, o.Deps)
}

// CanShowTUI reports whether the dashboard can be drawn where the command runs.
func CanShowTUI(d *command.Deps) bool {
	return !d.JSON && d.Getenv("TERM") != "dumb" && d.OnTerminal() && term.Foreground(d.Terminal)
}

// showMenu shows the dashboard for screen readers, which only appends rows.
func showMenu(cmd *cobra.Command, d *command.Deps) error {
	client, err := d.Client()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return menu.Run(cmd.Context(), menu.Options{
		Daemon: page.DaemonOf(client), In: d.In, Out: d.Out, Dir: d.Dir, Env: d.Env, Runner: config.ParseRunner, Config: d.CallerConfig(), Command: commands(cmd.Context(), d, program),
	})
}

// commands returns a function that makes commands of this program for the terminal.
func commands(ctx context.Context, d *command.Deps, program string) func(args ...string) *exec.Cmd {
	return func(args ...string) *exec.Cmd {
		if d.ConfigPath != "" {
			args = append([]string{"--config", d.CallerConfig()}, args...)
		}
		c := exec.CommandContext(ctx, program, args...)
		c.Env, c.Dir = d.Env, d.Dir
		return c
	}
}

// ShowTUI shows the dashboard if CanShowTUI. While it has the terminal, nothing else writes there.
func ShowTUI(cmd *cobra.Command, d *command.Deps) error {
	terminal, ok := d.Terminal.(*os.File)
	if !ok {
		return agency.Errorf(agency.CodeUsage, "agency tui needs a terminal").WithHint("agency tui --plain")
	}
	cfg, err := d.Config()
	if err != nil {
		return err
	}
	keys, err := tui.CheckKeys(cfg.Path, cfg.TUI.Keys, cfg.TUI.Views)
	if err != nil {
		return err
	}
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
		tell("it was stopped; this continues when it starts again")
		return func() { tell("") }
	}
	to := d.Err
	d.Err = io.Discard
	defer func() { d.Err = to }()
	runners, _ := complete.Runners(d)(cmd, nil, "")
	presets, _ := complete.Presets(d)(cmd, nil, "")
	return tui.Run(ctx, tui.Options{
		Daemon: page.DaemonOf(client), In: d.In, Out: terminal, Env: d.Env, Dir: d.Dir, Config: d.CallerConfig(), Now: d.Now, Away: away, Runner: config.ParseRunner, Runners: runners, Presets: presets, Keys: keys, Views: cfg.TUI.Views,
		Command: commands(ctx, d, program),
	})
}
