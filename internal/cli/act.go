package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// newSend returns the command agency send.
func newSend(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "send RUN TEXT",
		Short:   "Type a message into a run's agent and press Enter",
		GroupID: "run",
		Long: `Types a message into the agent of a run and presses Enter. It is refused while the run's terminal shows a dialog or a menu, which
the message would answer, while a person types there, and when the agent has ended or is headless. A program that reads lines, such
as a shell script, gets at most 4095 bytes of each (1023 on macOS): a longer one is refused. TEXT - reads the message from standard input.

"delivered" means that the agent was seen to take it: it told of a prompt, or its input box is empty and it works.`,
		Example: `  agency send fix-login "yes, use the second one"`,
		Args:    command.Takes("RUN", "TEXT"),
	}, func(cmd *cobra.Command, args []string) error {
		text := args[1]
		if text == "-" {
			given, err := term.ReadAll(cmd.Context(), d.In, "the message", inputLimit)
			if err != nil {
				return err
			}
			text = strings.TrimRight(given, "\n")
		}
		if !utf8.ValidString(text) {
			return agency.Errorf(agency.CodeUsage, "the message is not valid UTF-8").WithHint("iconv -f LATIN1 -t UTF-8 message.txt | agency send %s -", args[0])
		}
		if len(text) > inputLimit {
			return agency.Errorf(agency.CodeUsage, "the message has more than %d bytes", inputLimit).
				WithHint("write it to a file in the worktree and send its name")
		}
		resp, err := command.Call(cmd.Context(), d, api.SendInput, api.SendInputRequest{Run: args[0], Text: text})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			switch {
			case resp.Confirmed:
				_, _ = fmt.Fprintln(w, "delivered")
			case resp.Composer != "":
				_, _ = fmt.Fprintf(w, "delivered, not confirmed: in its input box stands: %s\n", term.SafeLine(resp.Composer))
				d.Chat("look: agency attach %s", args[0])
			default:
				_, _ = fmt.Fprintln(w, "delivered, not confirmed: nothing shows that the agent took it")
			}
		})
	})
	cmd.ValidArgsFunction = d.CompleteLive
	return cmd
}

// inputLimit is the longest message, in bytes.
const inputLimit = 256 << 10

// newStop returns the command agency stop.
func newStop(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "stop RUN...",
		Short:   "Stop a run's agent; its worktree and branch stay",
		GroupID: "run",
		Long: `Ends the agent of a run, with everything that it started, and then its tmux session: whoever is attached to it is back in their
own shell. The worktree, the branch and the logs stay, and agency resume goes on.

The agent has the time of [stop] grace to put its things in order before it is killed. A second agency stop meanwhile kills it at once.`,
		Example:     "  agency stop fix-login",
		Args:        command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		return d.Each(cmd, args, func(ref string) error { return stop(cmd.Context(), d, ref) })
	})
	cmd.ValidArgsFunction = d.CompleteLive
	return cmd
}

// patience is after how long a stop says what it waits for.
const patience = time.Second

func stop(ctx context.Context, d *command.Deps, ref string) error {
	cfg, err := d.Places()
	if err != nil {
		return err
	}
	slow := time.AfterFunc(patience, func() {
		d.Chat("waiting for the agent to end (up to %.0f s before it is killed)", cfg.Stop.Grace.Seconds())
	})
	defer slow.Stop()
	resp, err := command.Call(ctx, d, api.StopRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	return d.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is %s\n", resp.Run.Ref(), resp.Run.State)
		if resp.Run.Unrecorded {
			d.Chat("agency: note: %s", command.NotRecorded)
		}
	})
}

// removeOptions are the flags of agency rm, and what it works with.
type removeOptions struct {
	*command.Deps

	force, deleteBranch bool
}

// newRemove returns the command agency rm.
func newRemove(d *command.Deps) *cobra.Command {
	o := &removeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "rm RUN...",
		Short:   "Remove an ended run's worktree and session",
		GroupID: "run",
		Long: `Removes the worktree and the tmux session of a run that has ended. Work that is uncommitted or on no other branch is saved under
refs/agency/snapshots first. The branch stays unless --delete-branch is given, now or later, and that is refused for commits that
are nowhere else. The record and the logs stay too.`,
		Example:     "  agency rm fix-login",
		Args:        command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, o.run)
	cmd.Flags().BoolVar(&o.force, "force", false, "also when it takes work with it that cannot be saved")
	cmd.Flags().BoolVar(&o.deleteBranch, "delete-branch", false, "delete the run's branch too")
	cmd.ValidArgsFunction = d.CompleteRuns
	return cmd
}

func (o *removeOptions) run(cmd *cobra.Command, args []string) error {
	return o.Each(cmd, args, func(ref string) error {
		return o.remove(cmd.Context(), api.RemoveRunRequest{Run: ref, Force: o.force, DeleteBranch: o.deleteBranch})
	})
}

func (o *removeOptions) remove(ctx context.Context, req api.RemoveRunRequest) error {
	resp, err := command.Call(ctx, o.Deps, api.RemoveRun, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "removed %s\n", req.Run)
		if s := resp.Snapshot; s != nil {
			_, _ = fmt.Fprintf(w, "saved its work as %s; get it back: git switch --detach %s\n", s.Ref, s.Ref)
		}
		if resp.Branch != "" {
			_, _ = fmt.Fprintf(w, "branch %s stays\n", term.SafeLine(resp.Branch))
		}
		for _, warning := range resp.Warnings {
			o.Chat("agency: note: %s", term.SafeLine(warning))
		}
	})
}
