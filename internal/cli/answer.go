package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) answerCommand() *cobra.Command {
	var promptID string
	cmd := command(cobra.Command{
		Use:     "answer RUN allow|deny|TEXT",
		Short:   "Answer the permission or question that a run waits for",
		GroupID: "run",
		Long: `Answers what the agent of a run asks, by the keys of the dialog that its terminal shows: allow permits this once, deny refuses a
permission or a question, and a TEXT is one of the options of a question, or an answer of your own. A run that asks in its own words gets
the text as a message. It is refused when the terminal does not show what is asked, and while a person types there; dialogs of the program
itself, such as trust and logins, are left to a person. What a run asks is in agency show RUN.`,
		Example: `  agency answer fix-login allow
  agency answer fix-login "Use the second one"`,
		Args: takes("RUN", "ANSWER"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeLive(cmd, args, word)
			}
			return []string{string(agency.Allow), string(agency.Deny)}, cobra.ShellCompDirectiveNoFileComp
		},
	}, func(cmd *cobra.Command, args []string) error {
		req := api.AnswerRunRequest{Run: args[0], PromptID: promptID, Text: args[1]}
		if decision := agency.Decision(args[1]); decision == agency.Allow || decision == agency.Deny {
			req.Decision, req.Text = decision, ""
		}
		resp, err := call(cmd.Context(), a, api.AnswerRun, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			if resp.Confirmed {
				_, _ = fmt.Fprintln(w, "answered")
				return
			}
			_, _ = fmt.Fprintln(w, "answered, but the agent was not seen to take it")
			a.chat("look: agency attach %s", args[0])
		})
	})
	cmd.Flags().StringVar(&promptID, "prompt-id", "", "refuse unless this is what it waits for, an `ID` from an alert")
	return cmd
}

func (a *App) diffCommand() *cobra.Command {
	var stat bool
	cmd := command(cobra.Command{
		Use:     "diff RUN",
		Short:   "Show what a run changed since it began",
		GroupID: "inspect",
		Long: `Compares the worktree of a run with the commit that it began at: its commits, uncommitted changes and new files that are not ignored.
Of a run whose worktree is gone it shows the branch.`,
		Example:           "  agency diff fix-login\n  agency diff --stat fix-login",
		Args:              takes("RUN"),
		ValidArgsFunction: a.completeRuns,
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.DiffRun, api.DiffRunRequest{Run: args[0], MaxBytes: 4 << 20})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			if stat {
				rows := make([][]string, 0, len(resp.Files))
				for _, f := range resp.Files {
					rows = append(rows, []string{f.Status, term.SafeLine(f.Path)})
				}
				_, _ = io.WriteString(w, term.Table(rows))
			} else {
				_, _ = io.WriteString(w, a.paint(term.SafeText(resp.Patch)))
			}
			a.leftOut(&resp)
		})
	})
	cmd.Flags().BoolVar(&stat, "stat", false, "only the names of the files")
	return cmd
}

// leftOut tells of what a difference does not show. All of it is shown by the user's own repository, never by the worktree: what its
// .git leads to is the agent's choice, and so are the programs that git would run there.
func (a *App) leftOut(resp *api.DiffRunResponse) {
	if left := resp.LeftOut; left.Files > 0 {
		a.chat("agency: note: %d files with %s are too much to look at:", left.Files, byteSize(left.Bytes))
		for _, f := range left.Named {
			a.chat("  %s  %s", byteSize(f.Bytes), term.SafeLine(f.Path))
		}
		if more := left.Files - len(left.Named); more > 0 {
			a.chat("  and %d more", more)
		}
	}
	if resp.Truncated {
		a.chat("agency: note: the rest is left out; to see all of it, save it and compare: agency snapshot %s, then git -C %s diff %.12s REF, with the ref that it prints",
			resp.RunID, term.SafeLine(agency.ShellWord(resp.Repo)), resp.BaseCommit)
	}
}

// byteSize is a number of bytes for people.
func byteSize(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return fmt.Sprintf("%d B", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib*kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/(kib*kib))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(kib*kib*kib))
	}
}

// paint gives a patch the colours that git gives it, on a terminal.
func (a *App) paint(patch string) string {
	if !a.colour(a.Out) {
		return patch
	}
	var painted strings.Builder
	inHunk := false
	for line := range strings.Lines(patch) {
		text, end := strings.CutSuffix(line, "\n")
		colour := ""
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inHunk, colour = false, "\x1b[1m"
		case strings.HasPrefix(text, "@@"):
			inHunk, colour = true, "\x1b[36m"
		case !inHunk:
			colour = "\x1b[1m"
		case strings.HasPrefix(text, "+"):
			colour = "\x1b[32m"
		case strings.HasPrefix(text, "-"):
			colour = "\x1b[31m"
		}
		if colour != "" {
			text = colour + text + "\x1b[m"
		}
		painted.WriteString(text)
		if end {
			painted.WriteByte('\n')
		}
	}
	return painted.String()
}
