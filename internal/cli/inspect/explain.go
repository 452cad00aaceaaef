package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// NewExplain returns the command agency explain.
func NewExplain(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "explain RUN",
		Short:   "Explain why a run has its status",
		GroupID: "inspect",
		Long: `Prints the rule that decided the status of a run, and every piece of evidence: its
source, trust, age and content, and why agency ignored it. A * marks the evidence that decided.
docs/state-machine.md lists the rules.

Trust, from the highest: record (agency's own), kernel (processes and locks), agent (its program's
hooks, stream and files), word (what the model wrote), looks (what its terminal shows).`,
		Example: "  agency explain fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ExplainRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { explainText(w, &resp, d.Columns()) })
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// explainText writes an explanation as text.
func explainText(w io.Writer, resp *api.ExplainRunResponse, width int) {
	e := &resp.Explanation
	s := &e.Status
	line := func(format string, args ...any) {
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	line("run:     %s", term.SafeLine(resp.Run.Ref()))
	if resp.Run.Standby {
		line("began:   in a worktree that was made ahead (agency ls --standby)")
	}
	status := fmt.Sprintf("status:  %s %s  ", s.Label.Mark(), s.Label)
	if s.Label == agency.LabelKilled {
		line("%s", strings.TrimSpace(status)) // its summary is the same text
	} else {
		line("%s", term.Hang(status, term.SafeLine(s.Summary), width))
	}
	line("%s", term.Hang(fmt.Sprintf("rule:    %d  ", e.Rule), e.When, width))
	if r := &resp.Run; len(r.Enforces) > 0 {
		line("sandbox: %s", agency.Sandbox{Level: r.Sandbox, Network: r.Network})
		for _, what := range r.Enforces {
			line("%s", term.Hang("         ", what, width))
		}
	}
	if l := resp.Run.Limits; l != nil {
		for i, e := range l.Enforced {
			line("%-9s%s %s, by %s", map[bool]string{true: "limits:"}[i == 0], e.Limit, e.Value, e.By)
		}
	}
	line("\nevidence:")
	rows := [][]string{{"   ", "SOURCE", "TRUST", "AGE", "SAYS"}}
	ignored := []string{""}
	for i := range e.Findings {
		c := &e.Findings[i]
		mark, trust, age := "", string(c.Trust), "-"
		if c.Decided {
			mark = "  *"
		}
		if c.Confidence < 1 {
			trust += fmt.Sprintf(" %.0f%%", 100*c.Confidence)
		}
		if !c.At.IsZero() {
			age = duration.Short(time.Duration(c.AgeMS) * time.Millisecond)
		}
		rows = append(rows, []string{mark, string(c.Source), trust, age, term.SafeLine(c.Says)})
		ignored = append(ignored, term.SafeLine(c.Ignored))
	}
	for n, text := range term.TextRows(rows, width) {
		line("%s", text)
		if ignored[n] != "" {
			line("%s", term.Hang("       ignored: ", ignored[n], width))
		}
	}
	if len(e.Unknown) > 0 {
		line("\nunknown to this version:")
		for _, u := range e.Unknown {
			line("  %s, %s", term.SafeLine(u.Name), command.Count(u.Count, "time"))
		}
	}
	explainNewest(w, resp.Newest, width)
}

// explainNewest writes the last lines of the evidence file.
func explainNewest(w io.Writer, newest []api.EvidenceLine, width int) {
	if len(newest) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nnewest:")
	for i := range newest {
		e := &newest[i]
		words := []string{string(e.Source), string(e.Signal)}
		for _, word := range []string{e.Event, e.Tool, e.Text} {
			if word != "" {
				words = append(words, word)
			}
		}
		text := term.Fit(term.SafeLine(strings.Join(words, "  ")), 120)
		_, _ = fmt.Fprintln(w, term.Hang(e.At.Local().Format("  "+time.TimeOnly+"  "), text, width))
	}
}
