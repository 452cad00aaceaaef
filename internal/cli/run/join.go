package run

import (
	"context"
	"os"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/harness"
)

// joined is the command that starts the agent's own terminal.
type joined struct {
	RunID agency.RunID `json:"run_id"`
	Argv  []string     `json:"argv"`
	Dir   string       `json:"dir"`
}

// join replaces this process by the agent's own terminal, which joins the conversation of a run, or
// prints the command that starts it.
func join(ctx context.Context, d *command.Deps, ref string, exec Exec) error {
	if !d.JSON && !d.OnTerminal() {
		return agency.Errorf(agency.CodeUsage, "attach needs a terminal").WithHint("agency logs -f %s", ref)
	}
	resp, err := command.Call(ctx, d, api.JoinRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	if err := checkSocket("socket of the conversation", agency.CodeInvalidState, resp.Socket); err != nil {
		return err
	}
	cfg, err := d.Config()
	if err != nil {
		return err
	}
	argv, err := harness.Terminal(resp.Runner, cfg.Runners[resp.Runner].Exec, resp.Socket, resp.Conversation, d.Env)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.Print(joined{resp.RunID, argv, resp.Dir}, nil)
	}
	if err := os.Chdir(resp.Dir); err != nil {
		return agency.Errorf(agency.CodeInvalidState, "go to the folder of the run: %w", err)
	}
	d.Chat("agency: the run continues when you leave this terminal")
	return exec(argv, d.Env)
}
