package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) attachCommand() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "attach RUN",
		Short:   "Show a run's terminal and type into it",
		GroupID: "work",
		Long: `Shows the terminal of a run. Inside tmux the client switches to it, outside it attaches. The run goes on when you leave: press
the tmux prefix (Ctrl-b unless you changed it) and then d. With --json it prints the command instead of running it.`,
		Example: "  agency attach fix-login",
		Args:    takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error { return a.attach(cmd.Context(), args[0]) })
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

func (a *App) attach(ctx context.Context, ref string) error {
	resp, err := call(ctx, a, api.AttachRun, api.AttachRunRequest{Run: ref, Env: a.Env})
	if err != nil {
		return err
	}
	if a.json {
		return a.print(resp, nil)
	}
	if !a.onTerminal() {
		return agency.Errorf(agency.CodeUsage, "attach needs a terminal").WithHint("agency logs -f %s", ref)
	}
	env := a.Env
	if len(resp.Argv) > 0 && !strings.Contains(strings.Join(resp.Argv, " "), "switch-client") {
		// tmux refuses to attach inside a client of its own; on another server that is what the user asked for.
		env = without(env, "TMUX", "TMUX_PANE")
	}
	return a.Exec(resp.Argv, env)
}

// onTerminal says that a person can see and type.
func (a *App) onTerminal() bool {
	_, out := terminal(a.Out)
	_, in := terminal(a.In)
	return in && out
}

func without(env []string, names ...string) []string {
	kept := make([]string, 0, len(env))
next:
	for _, kv := range env {
		for _, name := range names {
			if strings.HasPrefix(kv, name+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}

func (a *App) sendCommand() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "send RUN TEXT",
		Short:   "Type a message into a run's agent and press Enter",
		GroupID: "work",
		Long: `Types a message into the agent of a run and presses Enter. It is refused while a person types in the run's terminal, and when the
agent has ended or is headless. TEXT - reads the message from standard input.`,
		Example: `  agency send fix-login "yes, use the second one"`,
		Args:    takes("RUN", "TEXT"),
	}, func(cmd *cobra.Command, args []string) error {
		text := args[1]
		if text == "-" {
			data, err := io.ReadAll(io.LimitReader(a.In, inputLimit+1))
			if err != nil {
				return agency.Errorf(agency.CodeUsage, "read the message from standard input: %w", err)
			}
			text = strings.TrimRight(string(data), "\n")
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
			if resp.Confirmed {
				_, _ = fmt.Fprintln(w, "delivered")
			} else {
				_, _ = fmt.Fprintln(w, "written; the agent has not reacted yet")
			}
		})
	})
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

// inputLimit is the longest message, in bytes.
const inputLimit = 256 << 10

func (a *App) stopCommand() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "stop RUN",
		Short:   "End a run's agent; its worktree and branch stay",
		GroupID: "work",
		Example: "  agency stop fix-login",
		Args:    takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.StopRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s is %s\n", resp.Run.Ref(), resp.Run.State) })
	})
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

func (a *App) removeCommand() *cobra.Command {
	var force, deleteBranch bool
	cmd := command(cobra.Command{
		Use:     "rm RUN",
		Short:   "Remove an ended run's worktree and session",
		GroupID: "work",
		Long: `Removes the worktree and the tmux session of a run that has ended. Work that is uncommitted or on no other branch is saved under
refs/agency/snapshots first. The branch stays unless --delete-branch is given; the record and the logs stay too.`,
		Example: "  agency rm fix-login",
		Args:    takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.RemoveRun, api.RemoveRunRequest{Run: args[0], Force: force, DeleteBranch: deleteBranch})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "removed %s\n", args[0])
			if s := resp.Snapshot; s != nil {
				_, _ = fmt.Fprintf(w, "saved its work as %s; get it back: git switch --detach %s\n", s.Ref, s.Ref)
			}
			if resp.Branch != "" {
				_, _ = fmt.Fprintf(w, "branch %s stays\n", safeLine(resp.Branch))
			}
			for _, warning := range resp.Warnings {
				a.chat("agency: note: %s", safeLine(warning))
			}
		})
	})
	cmd.Flags().BoolVar(&force, "force", false, "also when repositories inside the worktree hold work that cannot be saved")
	cmd.Flags().BoolVar(&deleteBranch, "delete-branch", false, "delete the run's branch too")
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}
