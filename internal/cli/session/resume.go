package session

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// resumeOptions are the flags and dependencies of agency session resume.
type resumeOptions struct {
	*command.Deps

	changed string
}

// The words of --plan-changed.
const (
	planAsItWas = "ok"
	planAsItIs  = "new"
)

// newResume returns the command agency session resume.
func newResume(d *command.Deps) *cobra.Command {
	o := &resumeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "resume SESSION",
		Short: "Continue a paused session",
		Long: `Continues a session that a user paused, or that agency paused after a failure
(on_failure: ask). After such a failure, agency cancels the agents that depend on the failed one,
and the others continue. Agents that wait for a user, for the end of a rate limit or for their next
attempt try again at once.

agency refuses this when the plan's files changed since the start. With --plan-changed ok the
session continues with the plan as it was. A new plan runs in a new session: agency session retry.`,
		Example: "  agency session resume active\n  agency session resume active --plan-changed ok",
		Args:    command.Takes("SESSION"),
	}, o.run)
	addPlanChanged(cmd, &o.changed, "`ok`: continue with the plan as it was at the start, even if its files changed", planAsItWas)
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

func (o *resumeOptions) run(cmd *cobra.Command, args []string) error {
	if err := checkPlanChanged(cmd, o.changed, planAsItWas); err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.ResumeSession, api.ResumeSessionRequest{Session: args[0], Dir: o.Dir, PlanChanged: o.changed == planAsItWas})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "session %s continues\n", resp.Session.Ref()) })
}

// addPlanChanged adds the flag --plan-changed with the words that a command takes.
func addPlanChanged(cmd *cobra.Command, to *string, usage string, words ...string) {
	cmd.Flags().StringVar(to, "plan-changed", "", usage)
	complete.Values(cmd, "plan-changed", words...)
}

// checkPlanChanged refuses any word but these.
func checkPlanChanged(cmd *cobra.Command, word string, words ...string) error {
	if cmd.Flags().Changed("plan-changed") && !slices.Contains(words, word) {
		return agency.Errorf(agency.CodeUsage, "--plan-changed is %q, not %s", word, strings.Join(words, " or ")).WithHint("%s --plan-changed ok ...", cmd.CommandPath())
	}
	return nil
}
