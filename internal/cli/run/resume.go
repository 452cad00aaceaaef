package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

type resumeOptions struct {
	*command.Deps

	prompt  string
	fresh   bool
	restart bool
	force   bool
	noSetup bool
	env     []string
	allLost bool
	yes     bool
}

// NewResume returns the command agency resume.
func NewResume(d *command.Deps) *cobra.Command {
	o := &resumeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "resume RUN",
		Short:   "Start an ended run's agent again in the same worktree",
		GroupID: "run",
		Long: `Starts another attempt of a run that has ended, in the same worktree. The agent
continues its conversation if it can; otherwise it begins a new one, and the command tells you.
After a reboot, --all-lost lists the lost runs; with --yes it resumes them one after the other, and
stops after three failures.

The agent gets the environment of this command. agency does not keep the variables of agency run
--env, because they may be secret: give them again.`,
		Example: `  agency resume fix-login
  agency resume fix-login --prompt "now add a test"
  agency resume --restart fix-login
  agency resume fix-login --env API_KEY --env MODE=test
  agency resume --all-lost --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.allLost && len(args) > 0:
				return agency.Errorf(agency.CodeUsage, "--all-lost takes no RUN").WithHint("agency resume --all-lost")
			case o.allLost:
				return nil
			}
			return command.Takes("RUN")(cmd, args)
		},
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.prompt, "prompt", "", "give a new task as `TEXT`, instead of the old one")
	f.BoolVar(&o.fresh, "fresh", false, "begin a new conversation; agency first saves the content of the worktree")
	f.BoolVar(&o.restart, "restart", false, "stop the run first if it is live")
	f.BoolVar(&o.force, "force", false, "resume even if the configuration of the runner changed")
	f.BoolVar(&o.noSetup, "no-setup", false, "resume even if the repository's setup never succeeded, and do not try it again")
	f.StringArrayVar(&o.env, "env", nil, "set `NAME=VALUE` for the runner, or NAME with its value here (repeatable)")
	f.BoolVar(&o.allLost, "all-lost", false, "list the runs whose agents disappeared")
	f.BoolVar(&o.yes, "yes", false, "with --all-lost: resume them")
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

func (o *resumeOptions) run(cmd *cobra.Command, args []string) error {
	if o.prompt != "" {
		if err := agency.CheckPrompt(o.prompt); err != nil {
			return err
		}
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	if err := fillEnv(o.Deps, o.env); err != nil {
		return err
	}
	if o.allLost {
		return o.resumeLost(cmd.Context())
	}
	resp, err := o.resume(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { o.resumedText(w, &resp) })
}

func (o *resumeOptions) resume(ctx context.Context, ref string) (api.ResumeRunResponse, error) {
	return command.Call(ctx, o.Deps, api.ResumeRun, api.ResumeRunRequest{
		Run: ref, Prompt: o.prompt, Fresh: o.fresh, Restart: o.restart, Force: o.force, NoSetup: o.noSetup, Set: command.OrEmpty(o.env), Env: o.Env, Config: o.CallerConfig(),
	})
}

// fillEnv sets variables without a value to their values in this environment.
func fillEnv(d *command.Deps, env []string) error {
	for i, name := range env {
		if strings.Contains(name, "=") {
			continue
		}
		at := slices.IndexFunc(d.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if at < 0 {
			return agency.Errorf(agency.CodeUsage, "--env %s: there is no such variable here", name).WithHint("--env %s=VALUE", name)
		}
		env[i] = name + "=" + d.Getenv(name)
	}
	return nil
}

func (o *resumeOptions) resumedText(w io.Writer, resp *api.ResumeRunResponse) {
	how := "continues its conversation"
	if !resp.Continued {
		how = resp.Note
	}
	_, _ = fmt.Fprintf(w, "%s: attempt %d, %s\n", resp.Run.Ref(), resp.Run.Attempt, term.SafeLine(how))
	o.Warn(resp.Warnings)
	if s := resp.Snapshot; s != nil {
		_, _ = fmt.Fprintf(w, "saved what was in the worktree as %s\n", s.Ref)
	}
}

// Limits for resuming many runs: agents that all start at once would meet the rate limits of their
// services.
const (
	resumeSpacing  = 2 * time.Second
	resumeFailures = 3
)

// lostRuns is what resume --all-lost prints with --json.
type lostRuns struct {
	Lost    []api.Run               `json:"lost"`
	Resumed []api.ResumeRunResponse `json:"resumed"`
	Failed  []lostFailure           `json:"failed"`
}

type lostFailure struct {
	Run     string      `json:"run"`
	Code    agency.Code `json:"code"`
	Message string      `json:"message"`
}

// resumeLost lists the runs whose agents disappeared, and with --yes resumes them one by one.
func (o *resumeOptions) resumeLost(ctx context.Context) error {
	all, err := command.Call(ctx, o.Deps, api.ListRuns, api.ListRunsRequest{Status: []string{string(agency.LabelFailed)}})
	if err != nil {
		return err
	}
	result := lostRuns{Lost: []api.Run{}, Resumed: []api.ResumeRunResponse{}, Failed: []lostFailure{}}
	for i := range all.Runs {
		if all.Runs[i].ErrorCode == agency.CodeRunnerDisappeared {
			result.Lost = append(result.Lost, all.Runs[i])
		}
	}
	if !o.yes {
		return o.Print(result, func(w io.Writer) {
			if len(result.Lost) == 0 {
				o.Chat("no run is lost")
				return
			}
			_, _ = io.WriteString(w, o.RunTable(result.Lost, true))
			o.Chat("to resume them one after the other: agency resume --all-lost --yes")
		})
	}
	for i := range result.Lost {
		if i > 0 {
			select {
			case <-time.After(resumeSpacing):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r := &result.Lost[i]
		resp, err := o.resume(ctx, string(r.ID))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e := agency.AsError(err)
			o.Chat("%s: %s [%s]", r.Ref(), term.SafeLine(e.Message), e.Code)
			result.Failed = append(result.Failed, lostFailure{r.Ref(), e.Code, e.Message})
			if len(result.Failed) == resumeFailures {
				o.Chat("stopped after %d failures; not tried: %s", resumeFailures, command.Count(len(result.Lost)-i-1, "run"))
				break
			}
			continue
		}
		result.Resumed = append(result.Resumed, resp)
		if !o.JSON {
			o.resumedText(o.Out, &resp)
		}
	}
	if len(result.Failed) > 0 {
		o.Status = agency.ExitError
	}
	return o.Print(result, func(io.Writer) {})
}
