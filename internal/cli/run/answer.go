package run

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// answerOptions are the flags and dependencies of agency answer.
type answerOptions struct {
	*command.Deps

	promptID string
	reason   string
	host     string
}

// NewAnswer returns the command agency answer.
func NewAnswer(d *command.Deps) *cobra.Command {
	o := &answerOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "answer {[RUN] [allow|deny|TEXT] | RUN {once|run|always} --host HOST}",
		Short:   "Answer the permission request or question of a run",
		GroupID: "run",
		Long: `Answers the request of a run's agent by pressing keys in the dialog that its
terminal shows. allow permits this once, deny refuses a permission or a question, and a TEXT is one
of the options of a question, or an answer of your own. An agent that asked in plain text, without a
dialog, gets the TEXT as a message. agency refuses the answer when the terminal does not show the
request, and while a user types there. Answer dialogs of the agent's own program, such as trust and
logins, in its terminal: agency attach. In the mode protocol agency presses no key: the agent gets
the answer with the id of its request, and acknowledges it. Of several open requests, --prompt-id
chooses one. With deny, --reason gives Claude Code the reason.

With --host, a run with the network allow may reach one more HOST, which agency show names after a
refusal: with once until the attempt ends, with run in later attempts too, with always in all your
runs, by [sandbox] hosts in your configuration.

Without an answer, the command shows the request and its choices, and on a terminal asks you for the
answer. Without RUN, it takes the run that asks, if only one does.`,
		Example: `  agency answer fix-login
  agency answer fix-login allow
  agency answer fix-login "Use the second one"
  agency answer fix-login deny --reason "The tests need no network"
  agency answer fix-login once --host example.com`,
		Args: command.TakesUpTo("RUN", "ANSWER"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return complete.Live(d)(cmd, args, word)
			}
			if cmd.Flags().Changed("host") {
				return scopes(), cobra.ShellCompDirectiveNoFileComp
			}
			return []string{string(agency.Allow), string(agency.Deny)}, cobra.ShellCompDirectiveNoFileComp
		},
	}, o.run)
	cmd.Flags().StringVar(&o.promptID, "prompt-id", "", "answer only the request with this `ID`, which an alert has")
	cmd.Flags().StringVar(&o.reason, "reason", "", "with deny: give the agent this `TEXT` as the reason, if its protocol takes one")
	cmd.Flags().StringVar(&o.host, "host", "", "allow the refused `HOST`, as in [sandbox] hosts")
	cmd.MarkFlagsMutuallyExclusive("host", "prompt-id")
	cmd.MarkFlagsMutuallyExclusive("host", "reason")
	_ = cmd.RegisterFlagCompletionFunc("host", complete.Shown(d, func(resp *api.ShowRunResponse) []string {
		hosts := []string{}
		for _, r := range unanswered(resp) {
			hosts = append(hosts, complete.Described(r.Entry, r.Reason))
		}
		return hosts
	}))
	_ = cmd.RegisterFlagCompletionFunc("prompt-id", complete.Shown(d, func(resp *api.ShowRunResponse) []string {
		ids := []string{}
		for i := range resp.Requests {
			ids = append(ids, complete.Described(resp.Requests[i].ID, resp.Requests[i].Text))
		}
		return ids
	}))
	return cmd
}

func (o *answerOptions) run(cmd *cobra.Command, args []string) error {
	if o.host != "" {
		return o.allowHost(cmd.Context(), args)
	}
	if o.reason != "" && len(args) < 2 {
		return agency.Errorf(agency.CodeUsage, "a reason goes with an answer").WithHint("agency answer RUN deny --reason TEXT")
	}
	if len(args) == 0 {
		ref, err := o.asking(cmd.Context())
		if err != nil {
			return err
		}
		args = []string{ref}
	}
	if len(args) == 2 {
		if !o.JSON {
			o.echo(cmd.Context(), args[0])
		}
		return o.answer(cmd.Context(), args[0], args[1])
	}
	asked, err := o.asked(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	o.promptID = cmp.Or(o.promptID, asked.PromptID) // answer exactly what is shown
	if o.JSON {
		return o.Print(asked, nil)
	}
	o.show(asked)
	if !o.OnTerminal() || asked.PromptID == "" || asked.Run.Request != nil && asked.Run.Request.Kind == agency.AsksDialog {
		return nil
	}
	_, _ = fmt.Fprint(o.Out, "\nyour answer, or Enter to leave it: ")
	line, err := bufio.NewReader(term.Input(cmd.Context(), o.In)).ReadString('\n')
	answer := strings.TrimSpace(line)
	if err != nil && !errors.Is(err, io.EOF) || answer == "" {
		return cmd.Context().Err()
	}
	return o.answer(cmd.Context(), args[0], answer)
}

// asking returns the one run here that asks something. None, or several, is an error.
func (o *answerOptions) asking(ctx context.Context) (ref string, err error) {
	client, err := o.Client()
	if err != nil {
		return "", err
	}
	resp, err := command.ListAround(ctx, client, api.ListRunsRequest{Dir: o.Dir, Status: []string{}, Order: api.OrderByNeed, Limit: mostWaiting})
	if err != nil {
		return "", err
	}
	refs := []string{}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; !r.State.Final() && (view.PromptID(r) != "" || r.Request != nil) {
			refs = append(refs, r.Ref())
		}
	}
	switch len(refs) {
	case 0:
		return "", agency.Errorf(agency.CodeRunNotFound, "no run asks anything").WithHint("agency ls")
	case 1:
		return refs[0], nil
	default:
		return "", agency.Errorf(agency.CodeUsage, "%d runs ask something: %s", len(refs), strings.Join(refs, ", ")).WithHint("agency answer %s", refs[0])
	}
}

// echo prints what a run asks, for a user who answers it, and from then on the answer is one to
// exactly that. Without --prompt-id it prints nothing when several requests are open, because the
// daemon refuses the answer then, and names them. It ignores errors: the answer itself returns them.
func (o *answerOptions) echo(ctx context.Context, ref string) {
	resp, err := command.Call(ctx, o.Deps, api.ShowRun, api.RunRequest{Run: ref})
	if err != nil {
		return
	}
	r := &resp.Run
	if o.promptID == "" && r.Mode == agency.ModeProtocol && len(resp.Requests) > 1 {
		return
	}
	o.choose(&resp)
	id := view.PromptID(r)
	if id == "" {
		return
	}
	o.promptID = cmp.Or(o.promptID, id)
	o.Chat("%s", term.SafeLine(view.Asks(r)))
}

// choose makes the request that --prompt-id names, if it is open, the one that a run shows.
func (o *answerOptions) choose(resp *api.ShowRunResponse) {
	for i := range resp.Requests {
		if q := &resp.Requests[i]; q.Is(o.promptID) || o.promptID != "" && q.ID == o.promptID {
			resp.Run.Request, resp.Run.Summary = q, q.Summary()
		}
	}
}

// askedOf is what a run waits for.
type askedOf struct {
	Run       api.Run  `json:"run"`
	PromptID  string   `json:"prompt_id"`
	Questions []string `json:"questions"` // and blockers, as the agent reported them
	Screen    []string `json:"screen"`    // the last lines of its terminal; untrusted text
	// Refused are the hosts that the user can allow its agent.
	Refused []agency.Refusal `json:"refused"`
}

// screenLines is how many lines of a terminal show what a run asks.
const screenLines = 16

// asked finds out what a run waits for. It returns an error when the run waits for nothing.
func (o *answerOptions) asked(ctx context.Context, ref string) (*askedOf, error) {
	resp, err := command.Call(ctx, o.Deps, api.ShowRun, api.RunRequest{Run: ref})
	if err != nil {
		return nil, err
	}
	o.choose(&resp)
	a := &askedOf{Run: resp.Run, PromptID: view.PromptID(&resp.Run), Questions: []string{}, Screen: []string{}, Refused: unanswered(&resp)}
	r := &a.Run
	switch {
	case r.RemovedAt != nil:
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is removed, so no agent would read the answer", r.Ref()).WithHint("start a new run: agency run TASK")
	case r.State.Final():
		return nil, agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so it would not read the answer", r.Ref()).
			WithHint("give it a new task: agency resume %s --prompt TEXT", r.Ref())
	case a.PromptID == "" && r.Request == nil:
		return a, nil // the answer itself returns why it cannot be given
	}
	if resp.Contract != nil && r.Request == nil {
		a.Questions = slices.Concat(a.Questions, resp.Contract.Questions, resp.Contract.Blockers)
	}
	if r.Request != nil && r.Request.Kind != agency.AsksPermission {
		if out, err := command.Call(ctx, o.Deps, api.ShowOutput, api.ShowOutputRequest{Run: ref, Lines: screenLines}); err == nil {
			a.Screen = out.Lines
		}
	}
	return a, nil
}

// show writes what a run asks, and the possible answers.
func (o *answerOptions) show(a *askedOf) {
	r := &a.Run
	line := func(head, text string) {
		_, _ = fmt.Fprintln(o.Out, term.Hang(head, term.SafeLine(text), o.Columns()))
	}
	for _, refused := range a.Refused {
		line("", fmt.Sprintf("%s was refused: agency answer %s once|run|always --host %s", refused.Host, r.Ref(), refused.Entry))
	}
	if a.PromptID == "" && r.Request == nil {
		line("", fmt.Sprintf("%s is %s and asks nothing: %s", r.Ref(), r.Status, view.Summary(r)))
		return
	}
	line("", view.Asks(r))
	for _, question := range a.Questions {
		if question != r.Summary {
			line("  - ", question)
		}
	}
	for _, text := range a.Screen {
		_, _ = fmt.Fprintln(o.Out, strings.TrimRight("  │ "+term.SafeText(text), " "))
	}
	for _, choice := range view.Choices(r) {
		line("  "+term.Pad(choice[0], 7), choice[1])
	}
	switch {
	case r.Request != nil && r.Request.Kind == agency.AsksDialog:
		line("  ", "only you can answer it, in its terminal: agency attach "+r.Ref())
	case a.PromptID == "":
		line("  ", "agency has not read what it asks; look in its terminal: agency attach "+r.Ref())
	}
}

// answer gives an answer to a run.
func (o *answerOptions) answer(ctx context.Context, ref, text string) error {
	req := api.AnswerRunRequest{Run: ref, PromptID: o.promptID, Text: text}
	decision := agency.Decision(text)
	if o.reason != "" && decision != agency.Deny {
		return agency.Errorf(agency.CodeUsage, "a reason is for deny, and the answer is %q", term.SafeLine(text)).
			WithHint("agency answer %s deny --reason TEXT", ref)
	}
	if decision == agency.Allow || decision == agency.Deny {
		req.Decision, req.Text = decision, o.reason
	}
	resp, err := command.Call(ctx, o.Deps, api.AnswerRun, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if resp.Confirmed {
			_, _ = fmt.Fprintln(w, "answered")
			return
		}
		_, _ = fmt.Fprintln(w, "answered, but agency did not see the agent accept it")
		o.Chat("look: agency attach %s", ref)
	})
}
