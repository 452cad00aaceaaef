package inspect

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// verifyOptions are the flags and dependencies of agency verify.
type verifyOptions struct {
	*command.Deps

	into, check, log                      string
	merged, uncommitted, noCache, approve bool
}

// NewVerify returns the command agency verify.
func NewVerify(d *command.Deps) *cobra.Command {
	o := &verifyOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "verify RUN",
		Short:   "Run the repository's checks on a run's work",
		GroupID: "inspect",
		Long: `Runs the checks that agency.toml lists, [[check]], on the last commit of a run's
branch, in a worktree that agency keeps for checks. agency reads the agency.toml of the target
branch, not the agent's, and you must trust it: agency trust. agency remembers verdicts, so a check
runs only once on the same files, with the same configuration and environment.

A verdict other than pass flags the run, until a later verification passes. Exit status: 0 all
checks passed, 4 one failed, 1 one timed out or cannot run, 8 a user must trust the checks, or
approve work that changes them.

Checks run code that the agent wrote, as your user.`,
		Example: `  agency verify fix-login
  agency verify fix-login --merged
  agency verify fix-login --log test`,
		Args:              command.Takes("RUN"),
		ValidArgsFunction: complete.Runs(d),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "run the checks of the target `BRANCH` (default: as for agency merge)")
	f.BoolVar(&o.merged, "merged", false, "check the work as merged with the target")
	f.BoolVar(&o.uncommitted, "include-uncommitted", false, "check what the agent did not commit too")
	f.StringVar(&o.check, "check", "", "run only the check `NAME`")
	f.BoolVar(&o.noCache, "no-cache", false, "run every check, even one whose verdict is known")
	f.BoolVar(&o.approve, "approve", false, "check work that changes what the checks run")
	f.StringVar(&o.log, "log", "", "print the output of the newest execution of the check `NAME`, and run nothing")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("check", complete.Reviewed(d, func(resp *api.ReviewRunResponse) []string {
		names := []string{}
		for i := range resp.Checks {
			names = append(names, complete.Described(resp.Checks[i].Name, string(resp.Checks[i].State)))
		}
		return names
	}))
	_ = cmd.RegisterFlagCompletionFunc("log", complete.Shown(d, func(resp *api.ShowRunResponse) []string {
		names := []string{}
		for i := range resp.Checks {
			names = append(names, complete.Described(resp.Checks[i].Name, string(resp.Checks[i].Verdict)))
		}
		return names
	}))
	return cmd
}

func (o *verifyOptions) run(cmd *cobra.Command, args []string) error {
	if o.log != "" {
		return o.printLog(cmd, args[0])
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.VerifyRun, api.VerifyRunRequest{
		Run: args[0], Into: o.into, Merged: o.merged, IncludeUncommitted: o.uncommitted, Check: o.check, NoCache: o.noCache, Approve: o.approve,
		Env: o.Env, Config: o.CallerConfig(),
	})
	if err != nil {
		return err
	}
	o.Warn(resp.Warnings)
	o.Status = verdictStatus(resp.Checks)
	return o.Print(resp, func(w io.Writer) {
		_, _ = io.WriteString(w, o.TextTable(checkRows(resp.Checks)))
		passed := 0
		for i := range resp.Checks {
			if resp.Checks[i].Verdict == agency.CheckPassed {
				passed++
				continue
			}
			o.Chat("its output: agency verify %s --log %s", resp.Run.Ref(), resp.Checks[i].Name)
		}
		how := ""
		if resp.Merged {
			how = ", merged with " + term.SafeLine(resp.Target)
		}
		_, _ = fmt.Fprintf(w, "%s at %.12s%s: %d of %d checks of %s passed\n", resp.Run.Ref(), resp.Source, how, passed, len(resp.Checks), term.SafeLine(resp.Target))
	})
}

// verdictStatus returns the exit status for the results of checks. A failed check takes precedence
// over one that gave no verdict on the work.
func verdictStatus(checks []agency.CheckResult) int {
	status := agency.ExitOK
	for i := range checks {
		switch checks[i].Verdict {
		case agency.CheckPassed:
		case agency.CheckFailed:
			return agency.ExitConflict
		default:
			status = agency.ExitError
		}
	}
	return status
}

// checkRows returns the rows of a table of verdicts.
func checkRows(checks []agency.CheckResult) [][]string {
	rows := make([][]string, 0, len(checks))
	for i := range checks {
		c := &checks[i]
		mark := "✕"
		if c.Verdict == agency.CheckPassed {
			mark = "✓"
		}
		rows = append(rows, []string{mark + " " + string(c.Verdict), c.Name, duration.Short(c.Ended.Sub(c.Began)), checkNote(c)})
	}
	return rows
}

// checkNote returns more details about a verdict.
func checkNote(c *agency.CheckResult) string {
	note := c.Reason
	switch {
	case c.Runs > 1 && c.Verdict == agency.CheckPassed:
		note = fmt.Sprintf("flaky: passed at try %d", c.Runs)
	case c.Runs > 1:
		note += fmt.Sprintf(", %d times", c.Runs)
	}
	if !c.Cached {
		return note
	}
	if note != "" {
		note += "; "
	}
	return note + "known from before"
}

func (o *verifyOptions) printLog(cmd *cobra.Command, ref string) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.ShowCheck, api.ShowCheckRequest{Run: ref, Check: o.log})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if resp.Truncated {
			o.Chat("agency: note: only the end is shown; all of it is in %s", resp.Check.Log)
		}
		_, _ = io.WriteString(w, term.SafeText(resp.Output))
	})
}
