package run

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// answerOptions are the flags of agency answer, and what it works with.
type answerOptions struct {
	*command.Deps

	promptID string
}

// NewAnswer returns the command agency answer.
func NewAnswer(d *command.Deps) *cobra.Command {
	o := &answerOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "answer RUN allow|deny|TEXT",
		Short:   "Answer the permission or question that a run waits for",
		GroupID: "run",
		Long: `Answers what the agent of a run asks, by the keys of the dialog that its terminal shows: allow permits this once, deny refuses a
permission or a question, and a TEXT is one of the options of a question, or an answer of your own. A run that asks in its own words gets
the text as a message. It is refused when the terminal does not show what is asked, and while a person types there; dialogs of the program
itself, such as trust and logins, are left to a person. What a run asks is in agency show RUN.`,
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
	cmd.Flags().StringVar(&o.promptID, "prompt-id", "", "refuse unless this is what it waits for, an `ID` from an alert")
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
