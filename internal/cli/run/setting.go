package run

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// NewModel returns the command agency model.
func NewModel(d *command.Deps) *cobra.Command {
	return newSetting(d, agency.SettingModel, cobra.Command{
		Use:     "model RUN [NAME]",
		Short:   "Show or change the model of a run's living agent",
		GroupID: "run",
		Long: `Without NAME, prints the model that the agent of a run uses, and those that it offers, if the
agent reports them. With NAME, changes the model from now on, by the agent's own protocol (agency run
--mode protocol). The agent decides which names it accepts. The next attempt begins with the model of
the run again.`,
		Example: `  agency model fix-login
  agency model fix-login opus`,
	})
}

// NewPermissionMode returns the command agency permission-mode.
func NewPermissionMode(d *command.Deps) *cobra.Command {
	return newSetting(d, agency.SettingPermissionMode, cobra.Command{
		Use:     "permission-mode RUN [NAME]",
		Short:   "Show or change how a run's agent asks for permission",
		GroupID: "run",
		Long: `Without NAME, prints the permission mode that the agent of a run uses, and those that it
offers, if the agent reports them. With NAME, changes the permission mode from now on, by the agent's
own protocol (agency run --mode protocol). The names are the agent's own; in some modes it does
everything without asking. Only you may change it. The next attempt begins with the permissions of
the run again.`,
		Example: `  agency permission-mode fix-login
  agency permission-mode fix-login acceptEdits`,
	})
}

func newSetting(d *command.Deps, setting agency.Setting, about cobra.Command) *cobra.Command {
	about.Args = oneOrBoth("RUN", "NAME")
	cmd := command.New(about, func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return showSetting(cmd.Context(), d, setting, args[0])
		}
		resp, err := command.Call(cmd.Context(), d, api.SetRun, api.SetRunRequest{Run: args[0], Setting: setting, Value: args[1]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if resp.Confirmed {
				_, _ = fmt.Fprintf(w, "%s: %s\n", setting.Words(), term.SafeLine(resp.Value))
			} else {
				_, _ = fmt.Fprintln(w, "change written, and not acknowledged yet")
			}
		})
	})
	cmd.ValidArgsFunction = completeOfLive(d, func(resp *api.ShowRunResponse) []string {
		_, offered := resp.Settings.Of(setting)
		return offered
	})
	return cmd
}

// completeOfLive offers the live runs, and then the words that list returns for the given run.
func completeOfLive(d *command.Deps, list func(resp *api.ShowRunResponse) []string) cobra.CompletionFunc {
	return complete.Then(complete.Live(d), complete.Shown(d, list))
}

// oneOrBoth accepts one argument or two.
func oneOrBoth(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return command.Takes(names...)(cmd, args)
	}
}

// showSetting prints the present value of a setting, and the values that the agent offers.
func showSetting(ctx context.Context, d *command.Deps, setting agency.Setting, ref string) error {
	resp, err := command.Call(ctx, d, api.ShowRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	now, offered := resp.Settings.Of(setting)
	return d.Print(resp, func(w io.Writer) {
		if now == "" {
			now = "unknown: its agent has not told it"
		}
		_, _ = fmt.Fprintf(w, "%s: %s\n", setting.Words(), term.SafeLine(now))
		if len(offered) > 0 {
			_, _ = fmt.Fprintf(w, "offered: %s\n", term.SafeLine(strings.Join(offered, ", ")))
		}
	})
}

// NewUnsend returns the command agency unsend.
func NewUnsend(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "unsend RUN [ID]",
		Short:   "Take back a message with which an agent has not begun",
		GroupID: "run",
		Long: `Takes back a message that the agent of a run has got and has not begun with, by the agent's own
protocol (agency run --mode protocol). Only Claude Code supports this. agency show lists these
messages with their ids. The beginning of an ID is enough; with only one message you need no ID.`,
		Example: "  agency unsend fix-login",
		Args:    oneOrBoth("RUN", "ID"),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.UnsendRequest{Run: args[0]}
		if len(args) > 1 {
			req.ID = args[1]
		}
		resp, err := command.Call(cmd.Context(), d, api.Unsend, req)
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if resp.Confirmed {
				_, _ = fmt.Fprintf(w, "taken back: %s\n", term.SafeLine(resp.Message.Text))
			} else {
				_, _ = fmt.Fprintln(w, "written, and not acknowledged yet")
			}
		})
	})
	cmd.ValidArgsFunction = completeOfLive(d, func(resp *api.ShowRunResponse) []string {
		words := make([]string, 0, len(resp.Queue))
		for _, m := range resp.Queue {
			words = append(words, complete.Described(m.ID, m.Text))
		}
		return words
	})
	return cmd
}
