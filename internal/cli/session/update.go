package session

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/view"
)

// updateOptions are the flags and dependencies of agency session update.
type updateOptions struct {
	*command.Deps

	agent, failure          string
	pid, exitCode, parallel int
}

// newUpdate returns the command agency session update.
func newUpdate(d *command.Deps) *cobra.Command {
	o := &updateOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "update SESSION {start | complete | fail | cancel | - | --max-parallel N}",
		Short: "Report the status of agents that you run yourself",
		Long: `Reports on a session of agency session create: with --agent that one of its
agents starts, is complete, has failed or is cancelled; without it that the whole session is
complete or cancelled. A session settles by itself when its last agent has ended. The report is
durable when the command returns.

With - the reports are lines of JSON on standard input, over one connection: {"agent": "001",
"action": "start", "pid": 4711}. agency answers each, in order, when it is durable: with --json by
an envelope on a line, otherwise only if it refuses the report.

--max-parallel changes how many agents of a session that agency runs may run at once.`,
		Example: `  agency session update active --agent 001 start --pid 4711
  agency session update active --agent 001 fail --error "no disk" --exit-code 2
  my-executor | agency session update active -
  agency session update active --max-parallel 5`,
		Args: command.TakesUpTo("SESSION", "ACTION"),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "report on the agent with this `ID`, instead of the session")
	f.IntVar(&o.pid, "pid", 0, "with start: the `PID` of the agent's process")
	f.IntVar(&o.exitCode, "exit-code", 0, "with complete or fail: the exit status `N` of the process (default: 0 or 1)")
	f.StringVar(&o.failure, "error", "", "with fail or cancel: the reason as `TEXT`")
	f.IntVar(&o.parallel, "max-parallel", 0, "run at most `N` agents at once")
	cmd.ValidArgsFunction = complete.Then(complete.Sessions(d), complete.Words("start", "complete", "fail", "cancel"))
	_ = cmd.RegisterFlagCompletionFunc("agent", complete.Agents(d))
	return cmd
}

func (o *updateOptions) run(cmd *cobra.Command, args []string) error {
	req := api.UpdateSessionRequest{Dir: o.Dir, Updates: []api.SessionUpdate{}, MaxParallel: o.parallel}
	given := cmd.Flags().Changed
	switch {
	case len(args) == 0:
		return agency.Errorf(agency.CodeUsage, "%s needs a SESSION", cmd.CommandPath()).WithHint("agency session ls --live")
	case given("max-parallel") && o.parallel < 1:
		return agency.Errorf(agency.CodeUsage, "--max-parallel is %d; it is 1 or more", o.parallel).WithHint("to start nothing more: agency session pause %s", args[0])
	case len(args) == 1 && !given("max-parallel"):
		return agency.Errorf(agency.CodeUsage, "%s needs an ACTION", cmd.CommandPath()).WithHint("start, complete, fail or cancel; - reads them from standard input")
	}
	req.Session = args[0]
	if len(args) == 2 && args[1] == "-" {
		return o.streamUpdates(cmd.Context(), args[0])
	}
	if len(args) == 2 {
		u := api.SessionUpdate{Agent: o.agent, Action: api.SessionAction(args[1]), Error: o.failure}
		actions := []api.SessionAction{api.ActionStart, api.ActionComplete, api.ActionFail, api.ActionCancel}
		if !slices.Contains(actions, u.Action) {
			return agency.Errorf(agency.CodeUsage, "%q is not an action", args[1]).WithHint("one of: start, complete, fail, cancel; - reads them from standard input")
		}
		if given("pid") {
			u.PID = &o.pid
		}
		if given("exit-code") {
			u.ExitCode = &o.exitCode
		}
		if err := checkUpdate(&u); err != nil {
			return err
		}
		req.Updates = append(req.Updates, u)
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.UpdateSession, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(io.Writer) {
		s := &resp.Session
		o.Chat("%s %s  %s", view.SessionMark(s), s.Ref(), view.Counts(s.Summary, 0))
	})
}

// checkUpdate refuses flags that an action does not take.
func checkUpdate(u *api.SessionUpdate) error {
	takes := map[api.SessionAction]struct{ pid, exit, failure bool }{
		api.ActionStart: {pid: true}, api.ActionComplete: {exit: true}, api.ActionFail: {exit: true, failure: true}, api.ActionCancel: {failure: true},
	}[u.Action]
	switch {
	case u.Action == api.ActionFail && u.Error == "":
		return agency.Errorf(agency.CodeUsage, "fail needs --error").WithHint(`such as --error "tests fail"`)
	case u.PID != nil && !takes.pid:
		return agency.Errorf(agency.CodeUsage, "--pid is for start, not for %s", u.Action)
	case u.ExitCode != nil && !takes.exit:
		return agency.Errorf(agency.CodeUsage, "--exit-code is for complete and fail, not for %s", u.Action)
	case u.Error != "" && !takes.failure:
		return agency.Errorf(agency.CodeUsage, "--error is for fail and cancel, not for %s", u.Action)
	}
	return nil
}
