package run

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// answerOptions are the flags and dependencies of agency answer.
type answerOptions struct {
	*command.Deps

	promptID string
}

// NewAnswer returns the command agency answer.
func NewAnswer(d *command.Deps) *cobra.Command {
	o := &answerOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "answer RUN allow|deny|TEXT",
		Short:   "Answer the permission request or question of a run",
		GroupID: "run",
		Long: `Answers the request of a run's agent by pressing the keys of the dialog that
its terminal shows: allow permits this once, deny refuses a permission or a question, and a TEXT is
one of the options of a question, or your own answer. When the agent asked in plain text and shows
no dialog, it gets the TEXT as a message. The answer is refused when the terminal does not show the
request, and while a user types there. Dialogs of the agent's own program, such as trust and logins,
are left to the user. agency show RUN shows what a run asks.`,
		Example: `  agency answer fix-login allow
  agency answer fix-login "Use the second one"`,
		Args: command.Takes("RUN", "ANSWER"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return d.CompleteLive(cmd, args, word)
			}
			return []string{string(agency.Allow), string(agency.Deny)}, cobra.ShellCompDirectiveNoFileComp
		},
	}, o.run)
	cmd.Flags().StringVar(&o.promptID, "prompt-id", "", "refuse unless the run waits for this request, an `ID` from an alert")
	return cmd
}

func (o *answerOptions) run(cmd *cobra.Command, args []string) error {
	req := api.AnswerRunRequest{Run: args[0], PromptID: o.promptID, Text: args[1]}
	if decision := agency.Decision(args[1]); decision == agency.Allow || decision == agency.Deny {
		req.Decision, req.Text = decision, ""
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.AnswerRun, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if resp.Confirmed {
			_, _ = fmt.Fprintln(w, "answered")
			return
		}
		_, _ = fmt.Fprintln(w, "answered, but the agent was not seen to take it")
		o.Chat("look: agency attach %s", args[0])
	})
}
