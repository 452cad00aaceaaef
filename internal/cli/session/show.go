package session

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// showOptions are the flags and dependencies of agency session show.
type showOptions struct {
	*command.Deps

	facts *facts
}

// newShow returns the command agency session show.
func newShow(d *command.Deps) *cobra.Command {
	o := &showOptions{Deps: d, facts: &facts{}}
	cmd := command.New(cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show a session, its agents and their results",
		Long: `Shows everything about a session; without SESSION, about the running one, or if
none runs, the latest.`,
		Example: "  agency session show\n  agency session show latest --json",
		Args:    command.TakesUpTo("SESSION"),
	}, o.run)
	o.facts.add(cmd)
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

func (o *showOptions) run(cmd *cobra.Command, args []string) error {
	o.Asks = o.facts.isComplete
	client, err := o.Client()
	if err != nil {
		return err
	}
	resp, err := find(cmd.Context(), o.Deps, client, args)
	if err != nil {
		return err
	}
	if asked, err := o.facts.print(o.Deps, &resp); asked {
		return err
	}
	return o.Print(resp, func(w io.Writer) { o.showSession(w, &resp) })
}

// showSession writes a session as text: facts, agents by wave, and a table of their results.
func (o *showOptions) showSession(w io.Writer, resp *api.ShowSessionResponse) {
	s := &resp.Session
	shown := &picture{ShowSessionResponse: resp, now: o.Now(), colour: o.Colour(), runs: true}
	width := o.Columns()
	shown.width = max(width-2, 0) // the agents are indented
	field := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-10s %s\n", name+":", term.SafeLine(fmt.Sprintf(format, args...)))
	}
	field("session", "%s", s.ID)
	if s.Name != "" {
		field("name", "%s", s.Name)
	}
	_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("%-10s ", "status:"), shown.pending(), width))
	if s.Paused != "" {
		field("paused", "%s", s.Paused)
	}
	place := func(path string) string {
		if width == 0 {
			return path
		}
		return strings.TrimPrefix(path, s.Repo+"/") // a terminal has little room, and the line above has the rest of the path
	}
	field("repo", "%s", s.Repo)
	switch {
	case s.PlanPath != "":
		field("plan", "%s", place(s.PlanPath))
	case s.SourceFile != "":
		field("plan", "%s", place(s.SourceFile))
	}
	if s.Source != "orchestrate" || s.External {
		field("source", "%s", s.Source)
	}
	field("started", "%s (%s ago)", s.StartedAt.Local().Format(time.DateTime), duration.Short(shown.now.Sub(s.StartedAt)))
	if s.CompletedAt != nil {
		field("ended", "%s", s.CompletedAt.Local().Format(time.DateTime))
	}
	if !s.External {
		field("parallel", "%d at once", s.MaxParallel)
	}
	if s.RetryOf != "" {
		field("retry of", "%s", s.RetryOf)
	}
	field("files", "%s", place(s.Dir))
	if s.ReportPath != "" {
		field("report", "%s", place(s.ReportPath))
	}
	if landed := view.Landed(resp.Agents); landed != "" {
		field("landed", "%s", landed)
	}
	_, _ = fmt.Fprintf(w, "\nagents:\n")
	for _, line := range shown.agents(0) {
		_, _ = fmt.Fprintln(w, fitWidth("  "+line, width))
	}
	showResults(w, resp, width)
}

// showResults writes the results of the agents that have ended. The results of an external session
// are unknown. On a terminal empty columns are left out, and a narrow one shows only the most
// important columns, so that no agent's name is cut. When the branches have no room, a line names
// them.
func showResults(w io.Writer, resp *api.ShowSessionResponse, width int) {
	rows := [][]string{{"AGENT", "STATUS", "TOOK", "TRIES", "COMMITS", "LINES", "TOKENS", "COST", "LANDED", "TESTS", "BRANCH"}}
	for i := range resp.Agents {
		if a := &resp.Agents[i]; a.Status.Final() && a.Result != nil {
			rows = append(rows, resultRow(a))
		}
	}
	if len(rows) == 1 {
		return
	}
	branches := "agency/" + resp.Session.Ref() + "/"
	switch {
	case width == 0:
		branches = ""
	case width < leastForNotes:
		for i, row := range rows {
			rows[i] = []string{row[0], row[1], row[4], row[5]}
		}
		term.Narrow(rows, width-2, []term.Cut{{0, 8}})
	default:
		if rows = filled(rows); fitsResults(rows, width-2) {
			branches = ""
			break
		}
		rows = without(rows, "BRANCH")
		for _, column := range []string{"TOKENS", "TRIES", "TOOK", "COST", "TESTS"} {
			if fitsResults(rows, width-2) {
				break
			}
			rows = without(rows, column)
		}
		term.Narrow(rows, width-2, []term.Cut{{0, 8}})
	}
	_, _ = fmt.Fprintf(w, "\nresults:\n")
	for line := range strings.Lines(term.Table(rows)) {
		_, _ = fmt.Fprintln(w, fitWidth("  "+strings.TrimSuffix(line, "\n"), width))
	}
	if branches != "" {
		_, _ = fmt.Fprintf(w, "  branches: %sAGENT\n", branches)
	}
	for i := range resp.Agents {
		switch a := &resp.Agents[i]; {
		case a.Result == nil:
		case a.Result.Problem != "":
			_, _ = fmt.Fprintln(w, fitWidth("  "+term.SafeLine(a.ID+" has no result to count: "+a.Result.Problem), width))
		case len(a.Result.Nested) > 0:
			_, _ = fmt.Fprintln(w, fitWidth("  "+term.SafeLine(a.ID+": other repositories, not in its result: "+strings.Join(a.Result.Nested, ", ")), width))
		}
		if landed := resp.Agents[i].Landed; landed != nil && landed.Why != "" && landed.State != string(agency.WorkPart) {
			_, _ = fmt.Fprintln(w, fitWidth("  "+term.SafeLine(resp.Agents[i].ID+" "+landed.State+": "+landed.Why), width))
		}
	}
}

// fitsResults cuts long tests, and reports whether the results then have room.
func fitsResults(rows [][]string, width int) bool {
	if i := slices.Index(rows[0], "TESTS"); i >= 0 {
		term.Narrow(rows, width, []term.Cut{{i, 20}})
	}
	return term.TableWidth(rows) <= width
}

// without returns rows without a column, if they have it.
func without(rows [][]string, column string) [][]string {
	i := slices.Index(rows[0], column)
	if i < 0 {
		return rows
	}
	kept := make([][]string, len(rows))
	for n, row := range rows {
		kept[n] = slices.Delete(slices.Clone(row), i, i+1)
	}
	return kept
}

// filled returns rows without the columns that hold only dashes.
func filled(rows [][]string) [][]string {
	kept := make([][]string, len(rows))
	for column := range rows[0] {
		if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "-" }) {
			for i, row := range rows {
				kept[i] = append(kept[i], row[column])
			}
		}
	}
	return kept
}

// resultRow returns the result of one agent.
func resultRow(a *api.SessionAgent) []string {
	r := a.Result
	took := "-"
	if a.StartedAt != nil && a.CompletedAt != nil {
		took = duration.Stopwatch(a.CompletedAt.Sub(*a.StartedAt))
	}
	commits, lines := strconv.Itoa(r.Commits), fmt.Sprintf("+%d -%d", r.Added, r.Deleted)
	switch {
	case r.Problem != "":
		commits, lines = "-", "-"
	case r.Dirty:
		commits += "+" // there is also uncommitted work
	}
	return []string{
		a.ID, view.AgentMark(a) + " " + string(a.Status), took, strconv.Itoa(a.Attempts), commits, lines,
		view.Tokens(&r.Usage), view.Cost(&r.Usage), command.OrDash(term.SafeLine(view.LandedWord(a.Landed))), command.OrDash(term.Fit(term.SafeLine(r.Tests), command.SummaryColumns)), command.OrDash(term.SafeLine(a.Branch)),
	}
}

// fitWidth cuts a line to a width; 0 means no limit. Colours do not count.
func fitWidth(line string, width int) string {
	if width == 0 {
		return line
	}
	return term.Fit(line, width)
}
