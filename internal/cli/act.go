package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// onTerminal says that a person can see and type.
func (a *App) onTerminal() bool {
	_, out := term.Columns(a.Out)
	_, in := term.Columns(a.In)
	return in && out
}

func (a *App) sendCommand() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "send RUN TEXT",
		Short:   "Type a message into a run's agent and press Enter",
		GroupID: "run",
		Long: `Types a message into the agent of a run and presses Enter. It is refused while the run's terminal shows a dialog or a menu, which
the message would answer, while a person types there, and when the agent has ended or is headless. A program that reads lines, such
as a shell script, gets at most 4095 bytes of each (1023 on macOS): a longer one is refused. TEXT - reads the message from standard input.

"delivered" means that the agent was seen to take it: it told of a prompt, or its input box is empty and it works.`,
		Example: `  agency send fix-login "yes, use the second one"`,
		Args:    takes("RUN", "TEXT"),
	}, func(cmd *cobra.Command, args []string) error {
		text := args[1]
		if text == "-" {
			given, err := term.ReadAll(cmd.Context(), a.In, "the message", inputLimit)
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
		resp, err := call(cmd.Context(), a, api.SendInput, api.SendInputRequest{Run: args[0], Text: text})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			switch {
			case resp.Confirmed:
				_, _ = fmt.Fprintln(w, "delivered")
			case resp.Composer != "":
				_, _ = fmt.Fprintf(w, "delivered, not confirmed: in its input box stands: %s\n", term.SafeLine(resp.Composer))
				a.chat("look: agency attach %s", args[0])
			default:
				_, _ = fmt.Fprintln(w, "delivered, not confirmed: nothing shows that the agent took it")
			}
		})
	})
	cmd.ValidArgsFunction = a.completeLive
	return cmd
}

// inputLimit is the longest message, in bytes.
const inputLimit = 256 << 10

func (a *App) stopCommand() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "stop RUN...",
		Short:   "Stop a run's agent; its worktree and branch stay",
		GroupID: "run",
		Long: `Ends the agent of a run, with everything that it started, and then its tmux session: whoever is attached to it is back in their
own shell. The worktree, the branch and the logs stay, and agency resume goes on.

The agent has the time of [stop] grace to put its things in order before it is killed. A second agency stop meanwhile kills it at once.`,
		Example:     "  agency stop fix-login",
		Args:        takesRuns,
		Annotations: map[string]string{manyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		return a.each(cmd, args, func(ref string) error { return a.stop(cmd.Context(), ref) })
	})
	cmd.ValidArgsFunction = a.completeLive
	return cmd
}

// patience is after how long a stop says what it waits for.
const patience = time.Second

func (a *App) stop(ctx context.Context, ref string) error {
	cfg, err := a.places()
	if err != nil {
		return err
	}
	slow := time.AfterFunc(patience, func() {
		a.chat("waiting for the agent to end (up to %.0f s before it is killed)", cfg.Stop.Grace.Seconds())
	})
	defer slow.Stop()
	resp, err := call(ctx, a, api.StopRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	return a.print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is %s\n", resp.Run.Ref(), resp.Run.State)
		if resp.Run.Unrecorded {
			a.chat("agency: note: %s", notRecorded)
		}
	})
}

// notRecorded is what holds of an attempt whose newest state is in the daemon's memory alone.
const notRecorded = "not in the record yet: the disk takes nothing; it is tried again and again"

// each acts on every run that was named and goes on after a failure; the first one's exit status is the command's. With
// --json it is one run, because it is one envelope.
func (a *App) each(cmd *cobra.Command, refs []string, act func(ref string) error) error {
	if len(refs) == 1 {
		return act(refs[0])
	}
	if a.json {
		return agency.Errorf(agency.CodeUsage, "%s --json takes one RUN, and was given %d", cmd.CommandPath(), len(refs)).
			WithHint("%s --json %s", cmd.CommandPath(), refs[0])
	}
	for _, ref := range refs {
		err := act(ref)
		if stopped := cmd.Context().Err(); stopped != nil {
			return stopped
		}
		if err != nil {
			a.status = cmp.Or(a.status, a.fail(agency.AsError(err)))
		}
	}
	return nil
}

func (a *App) removeCommand() *cobra.Command {
	var force, deleteBranch bool
	cmd := command(cobra.Command{
		Use:     "rm RUN...",
		Short:   "Remove an ended run's worktree and session",
		GroupID: "run",
		Long: `Removes the worktree and the tmux session of a run that has ended. Work that is uncommitted or on no other branch is saved under
refs/agency/snapshots first. The branch stays unless --delete-branch is given, now or later, and that is refused for commits that
are nowhere else. The record and the logs stay too.`,
		Example:     "  agency rm fix-login",
		Args:        takesRuns,
		Annotations: map[string]string{manyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		return a.each(cmd, args, func(ref string) error {
			return a.remove(cmd.Context(), api.RemoveRunRequest{Run: ref, Force: force, DeleteBranch: deleteBranch})
		})
	})
	cmd.Flags().BoolVar(&force, "force", false, "also when it takes work with it that cannot be saved")
	cmd.Flags().BoolVar(&deleteBranch, "delete-branch", false, "delete the run's branch too")
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

func (a *App) remove(ctx context.Context, req api.RemoveRunRequest) error {
	resp, err := call(ctx, a, api.RemoveRun, req)
	if err != nil {
		return err
	}
	return a.print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "removed %s\n", req.Run)
		if s := resp.Snapshot; s != nil {
			_, _ = fmt.Fprintf(w, "saved its work as %s; get it back: git switch --detach %s\n", s.Ref, s.Ref)
		}
		if resp.Branch != "" {
			_, _ = fmt.Fprintf(w, "branch %s stays\n", term.SafeLine(resp.Branch))
		}
		for _, warning := range resp.Warnings {
			a.chat("agency: note: %s", term.SafeLine(warning))
		}
	})
}
