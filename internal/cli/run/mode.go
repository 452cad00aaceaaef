package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

type modeOptions struct {
	*command.Deps

	when    string
	prompt  string
	attempt int
	force   bool
	env     []string
}

// modePause is the time between two looks at an agent that works although its run is settled, such
// as one that offered its work and continues.
const modePause = time.Second

// NewMode returns the command agency mode.
func NewMode(d *command.Deps) *cobra.Command {
	o := &modeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "mode RUN terminal|headless|protocol",
		Short:   "Continue a run's conversation in another mode",
		GroupID: "run",
		Long: `Continues the conversation of a run in another mode: agency ends its agent, and starts it
again in the same worktree as the next attempt. The agent gets no message, and waits for yours, unless
you give a prompt. It has the permissions of its first start.

By default the command waits until the agent is at rest. It refuses while the agent asks something or
has tasks in the background; with --when now, these and its turn are lost. When the agent cannot continue
its conversation, the command fails with E_CONVERSATION_LOST. With --attempt N, it returns to the
conversation of attempt N, for example after that error.

The agent gets the environment of this command, as with agency resume: give the variables of
agency run --env again.`,
		Example: `  agency mode fix-login protocol
  agency mode fix-login terminal --when now
  agency mode fix-login headless --prompt "now write the changelog"
  agency mode fix-login protocol --env API_KEY`,
		Args: command.Takes("RUN", "terminal|headless|protocol"),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.when, "when", "idle", "end the agent when it is `idle`, or now")
	f.StringVar(&o.prompt, "prompt", "", "give a new task as `TEXT`")
	f.IntVar(&o.attempt, "attempt", 0, "continue the conversation of attempt `N` (default: the newest)")
	f.BoolVar(&o.force, "force", false, "do it even if the configuration of the runner changed")
	f.StringArrayVar(&o.env, "env", nil, "set `NAME=VALUE` for the runner, or NAME with its value here (repeatable)")
	complete.Values(cmd, "when", "idle", "now")
	_ = cmd.RegisterFlagCompletionFunc("attempt", complete.Attempts(d))
	cmd.ValidArgsFunction = complete.Then(complete.Runs(d), complete.Words(string(agency.ModeTerminal), string(agency.ModeHeadless), string(agency.ModeProtocol)))
	return cmd
}

func (o *modeOptions) run(cmd *cobra.Command, args []string) error {
	if o.when != "idle" && o.when != "now" {
		return agency.Errorf(agency.CodeUsage, "--when %q does not exist", o.when).WithHint("--when idle or --when now")
	}
	if args[1] == "" {
		return agency.Errorf(agency.CodeUsage, "the mode is empty").WithHint("%s", agency.ModeWords())
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	if err := fillEnv(o.Deps, o.env); err != nil {
		return err
	}
	resp, err := o.move(cmd.Context(), args[0], agency.Mode(args[1]))
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s: attempt %d continues the conversation in the mode %s\n", resp.Run.Ref(), resp.Run.Attempt, resp.Run.Mode)
		o.Warn(resp.Warnings)
	})
}

// move asks for the other mode until the agent is at rest.
func (o *modeOptions) move(ctx context.Context, ref string, mode agency.Mode) (api.ResumeRunResponse, error) {
	for said := false; ; said = true {
		resp, err := command.Call(ctx, o.Deps, api.ResumeRun, api.ResumeRunRequest{
			Run: ref, Prompt: o.prompt, Mode: mode, Idle: o.when == "idle", Attempt: o.attempt, Force: o.force, Set: command.OrEmpty(o.env), Env: o.Env, Config: o.CallerConfig(),
		})
		if e := agency.AsError(err); err == nil || e.Details["busy"] != true {
			return resp, err
		}
		if !said {
			o.Chat("waiting until its agent is at rest; --when now does not wait")
		}
		if ref, err = o.awaitRest(ctx, ref); err != nil {
			return resp, err
		}
	}
}

// awaitRest waits until a run is settled, and returns its id, since another run may get its name. A
// run that was stopped meanwhile stays stopped.
func (o *modeOptions) awaitRest(ctx context.Context, ref string) (id string, err error) {
	select {
	case <-time.After(modePause):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	waited, err := command.Call(ctx, o.Deps, api.WaitRuns, api.WaitRunsRequest{Runs: []string{ref}})
	if err != nil {
		return "", err
	}
	r := &waited.Runs[0]
	if r.State == agency.Killed {
		return "", agency.Errorf(agency.CodeInvalidState, "%s was stopped before its agent was at rest", r.Ref()).WithHint("continue it: agency resume %s", r.Ref())
	}
	return string(r.ID), nil
}
