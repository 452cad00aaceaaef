package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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

// NewShow returns the command agency show.
func NewShow(d *command.Deps) *cobra.Command {
	paths := false
	cmd := command.New(cobra.Command{
		Use:     "show RUN",
		Aliases: []string{"inspect"},
		Short:   "Show everything about one run",
		GroupID: "inspect",
		Example: `  agency show fix-login
  cd "$(agency show fix-login --paths | sed -n 's/^worktree: *//p')"`,
		Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ShowRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			showText(w, &resp, d.Names(cmd.Context()), d.Now(), d.Columns())
			if paths {
				showPaths(w, &resp)
			}
		})
	})
	cmd.Flags().BoolVar(&paths, "paths", false, "show the worktree and the files of the run too")
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// showText writes a run as text: facts, the agent's report, git. It leaves out what is empty. named
// returns the name of an id.
func showText(w io.Writer, s *api.ShowRunResponse, named func(id string) string, now time.Time, width int) {
	field := func(name, format string, args ...any) {
		_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("%-13s ", name+":"), term.SafeLine(fmt.Sprintf(format, args...)), width))
	}
	ago := func(t time.Time) string { return duration.Short(now.Sub(t)) + " ago" }
	showState(field, &s.Run, named, ago)
	showAgent(field, s)
	showOrigin(field, &s.Run, ago)
	showRequests(w, s, ago, width)
	showTodos(w, s, width)
	showQueue(w, s, width)
	showReported(w, s, ago, width)
	showAttempts(w, s, ago, width)
	showGit(w, s, width)
	showChecks(w, s, ago, width)
	if s.LogLost > 0 {
		field("log lost", "%d bytes, which the disk did not take", s.LogLost)
	}
	for _, in := range s.Inputs {
		field("input", "%s  %d bytes  sha256 %.12s", in.Path, in.Size, in.SHA256)
	}
	if !s.Run.State.Final() {
		field("terminal", "agency attach %s", s.Run.Ref())
	}
}

// showState writes what the run is, and its state.
func showState(field func(name, format string, args ...any), r *api.Run, named func(id string) string, ago func(time.Time) string) {
	field("run", "%s", r.Handle)
	if r.Name != "" {
		field("name", "%s", r.Name)
	}
	field("id", "%s", r.ID)
	status := fmt.Sprintf("%s %s", r.Status.Mark(), r.Status)
	if r.Summary != "" && r.Status != agency.LabelKilled {
		status += "  " + r.Summary
	}
	field("status", "%s", status)
	if r.Problem != "" {
		field("problem", "%s", r.Problem)
	}
	if f := r.Flag; f != nil {
		field("flagged", "%s by %s: %s", ago(f.At), named(f.By), f.Reason)
	}
	if pr := r.PR; pr != nil {
		facts := []string{string(pr.State), pr.Checks, pr.Review}
		if pr.Checks != "" {
			facts[1] = "checks " + pr.Checks
		}
		facts = slices.DeleteFunc(facts, func(s string) bool { return s == "" })
		field("pr", "#%d %s, %s: %s", pr.Number, strings.Join(facts, ", "), ago(pr.At), pr.URL)
	}
	field("branch", "%s  (from %.12s)", r.Branch, r.BaseCommit)
	if r.Standby {
		field("began", "in a worktree that was made ahead")
	}
}

// showNetwork writes the hosts that an agent reaches, and those that the user can still allow.
func showNetwork(field func(name, format string, args ...any), ref string, use *agency.NetworkUse) {
	field("hosts", "%s", strings.Join(use.Hosts, ", "))
	for _, r := range use.Unanswered() {
		field("refused", "%s: agency answer %s once|run|always --host %s", r.Host, ref, r.Entry)
	}
}

// showAgent writes which agent works on the run, and what it used.
func showAgent(field func(name, format string, args ...any), s *api.ShowRunResponse) {
	r := &s.Run
	runner := r.Runner
	if r.Model != "" {
		runner += ", model " + r.Model
	}
	if r.Mode != "" && r.Mode != agency.ModeTerminal {
		runner += ", " + string(r.Mode)
	}
	field("runner", "%s", runner)
	if s.Settings.PermissionMode != "" {
		field("permissions", "%s", s.Settings.PermissionMode)
	}
	if r.Sandbox != agency.SandboxWorktree {
		field("sandbox", "%s", agency.Sandbox{Level: r.Sandbox, Network: r.Network})
		if r.Image != nil {
			field("image", "%s", r.Image)
		}
		if r.Ports != nil && !r.State.Final() {
			for _, p := range r.Ports.Forwarded {
				field("port", "%d at %s", p.Port, p.Address)
			}
		}
		for _, what := range r.Enforces {
			field("enforces", "%s", what)
		}
		if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Network != nil {
			showNetwork(field, r.Ref(), s.Attempts[n-1].Network)
		}
	}
	if r.Limits != nil {
		for _, l := range r.Limits.Enforced {
			field("limit", "%s %s, by %s", l.Limit, l.Value, l.By)
		}
		for _, l := range r.Limits.Reached {
			field("reached", "%s", l)
		}
	}
	if r.Conversation != "" {
		field("conversation", "%s", r.Conversation)
	}
	if u := &r.Usage; u.InputTokens != nil || u.OutputTokens != nil || u.CostUSD != nil {
		field("used", "%s", view.Usage(u))
	}
	for _, m := range r.Usage.Models {
		field("by model", "%s: %d in, %d cache read, %d cache write 5m, %d cache write 1h, %d out", m.Model, m.Input, m.CacheRead, m.CacheWrite5m, m.CacheWrite1h, m.Output)
	}
}

// showOrigin writes how the run was made.
func showOrigin(field func(name, format string, args ...any), r *api.Run, ago func(time.Time) string) {
	if r.StallAfterMS > 0 {
		field("stalled", "after %s without a sign", duration.Short(time.Duration(r.StallAfterMS)*time.Millisecond))
	}
	if r.StuckIntervals > 0 {
		field("stuck", "after %d intervals without a sign of life", r.StuckIntervals)
	}
	if r.Preset != "" {
		field("preset", "%s", r.Preset)
	}
	if len(r.Tags) > 0 {
		field("tags", "%s", strings.Join(r.Tags, ", "))
	}
	field("created", "%s (%s)", r.CreatedAt.Local().Format(time.DateTime), ago(r.CreatedAt))
	if r.RemovedAt != nil {
		field("removed", "%s", ago(*r.RemovedAt))
	}
}

// showPaths writes where the files of a run are, each on one line whatever its length: a broken
// path cannot be pasted.
func showPaths(w io.Writer, s *api.ShowRunResponse) {
	_, _ = fmt.Fprintln(w)
	for _, p := range []struct{ name, path string }{
		{"repo", s.Run.Repo}, {"worktree", s.Run.Worktree}, {"run dir", s.Run.RunDir}, {"prompt", s.PromptPath}, {"log", s.LogPath}, {"output", s.OutputPath},
	} {
		if p.path != "" {
			_, _ = fmt.Fprintf(w, "%-13s %s\n", p.name+":", term.SafeLine(p.path))
		}
	}
}

// showTodos writes the agent's list of its work.
func showTodos(w io.Writer, s *api.ShowRunResponse, width int) {
	if len(s.Todos) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\ntodos:")
	marks := map[agency.TodoState]string{agency.TodoInProgress: "[>] ", agency.TodoCompleted: "[x] "}
	for _, todo := range s.Todos {
		_, _ = fmt.Fprintln(w, term.Hang("  "+cmp.Or(marks[todo.State], "[ ] "), term.SafeLine(todo.Text), width))
	}
}

// showQueue writes the messages that the agent has not begun to work on.
func showQueue(w io.Writer, s *api.ShowRunResponse, width int) {
	for i, m := range s.Queue {
		if i == 0 {
			_, _ = fmt.Fprintln(w, "\nmessages with which it has not begun:")
		}
		_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %.8s ", term.SafeLine(m.ID)), term.SafeLine(m.By+": "+m.Text), width))
	}
}

// showRequests writes the requests of the agent's program, first the one that its terminal shows.
func showRequests(w io.Writer, s *api.ShowRunResponse, ago func(time.Time) string, width int) {
	for i := range s.Requests {
		title := "\nrequest:"
		if i > 0 {
			title = "\nbehind it:"
		}
		_, _ = fmt.Fprintln(w, title)
		showRequest(w, &s.Requests[i], ago, width)
	}
}

func showRequest(w io.Writer, r *agency.Request, ago func(time.Time) string, width int) {
	line := func(name, text string) { _, _ = fmt.Fprintln(w, term.Hang("  "+name+": ", term.SafeLine(text), width)) }
	line("asks for", string(r.Kind))
	line("since", ago(r.At))
	if r.Tool != "" {
		line("tool", r.Tool)
	}
	if r.Text != "" {
		line("text", r.Text)
	}
	if r.Subagent != "" {
		line("for", r.Subagent)
	}
	if r.Confidence < 1 {
		line("seen on", fmt.Sprintf("the screen, confidence %.0f%%", 100*r.Confidence))
	}
}

func showReported(w io.Writer, s *api.ShowRunResponse, ago func(time.Time) string, width int) {
	c := s.Contract
	if c == nil {
		if strings.HasPrefix(s.Run.Problem, "invalid status file") {
			_, _ = fmt.Fprintf(w, "\nrunner_status:\n%s\n", term.Hang("  ", term.SafeLine(s.Run.Problem), width))
		}
		return
	}
	if s.Run.State.Final() && c.Status == agency.ReportedWorking || s.Run.State == agency.Completed && c.Asks() && s.Run.Summary == "" {
		return // it no longer works, and has its answer
	}
	line := func(head, text string) { _, _ = fmt.Fprintln(w, term.Hang("  "+head, term.SafeLine(text), width)) }
	list := func(name string, items []string) {
		if len(items) == 0 {
			return
		}
		line(name+":", "")
		for _, item := range items {
			line("  - ", item)
		}
	}
	_, _ = fmt.Fprintln(w, "\nrunner_status:")
	line("status: ", string(c.Status))
	line("updated: ", ago(s.StatusAt))
	line("summary: ", c.Summary)
	list("questions", c.Questions)
	list("blockers", c.Blockers)
	if c.HowToTest != "" {
		line("how_to_test: ", c.HowToTest)
	}
	list("risks", c.Risks)
}

func showAttempts(w io.Writer, s *api.ShowRunResponse, ago func(time.Time) string, width int) {
	_, _ = fmt.Fprintln(w, "\nattempts:")
	for i := range s.Attempts {
		at := &s.Attempts[i]
		text := at.State.String()
		if at.StartedAt != nil {
			text += ", started " + ago(*at.StartedAt)
		}
		if at.EndedAt != nil {
			text += ", ended " + ago(*at.EndedAt)
		}
		if at.ExitCode != nil {
			text += fmt.Sprintf(", exit %d", *at.ExitCode)
		}
		if at.Signal != "" {
			text += ", " + at.Signal
		}
		if at.Error != "" && at.ErrorCode != "" { // without a code, the error repeats the exit status
			text += ", " + term.SafeLine(at.Error)
		}
		if at.ErrorCode != "" {
			text += " [" + string(at.ErrorCode) + "]"
		}
		if at.State == agency.Running && at.StopRequestedAt != nil {
			text += ", being stopped"
		}
		if i == len(s.Attempts)-1 {
			if s.Run.Unrecorded {
				text += ", " + command.NotRecorded
			}
			if at.State == agency.Running && !s.Connected {
				text += ", wrapper not connected"
			}
			if lost := at.ErrorCode == agency.CodeRunnerDisappeared; s.LastOutput != nil && (lost || at.State == agency.Running) {
				text += ", last output " + ago(*s.LastOutput)
			}
		}
		_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %d  ", at.Number), text, width))
	}
}

// showChecks writes the newest verdict of each check on the work of a run.
func showChecks(w io.Writer, s *api.ShowRunResponse, ago func(time.Time) string, width int) {
	if len(s.Checks) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nchecks:")
	for i, row := range checkRows(s.Checks) {
		c := &s.Checks[i]
		text := fmt.Sprintf("%s of %.12s for %s, %s", c.Name, c.Source, c.Target, ago(c.At))
		if c.Merged {
			text = fmt.Sprintf("%s of %.12s merged with %s, %s", c.Name, c.Source, c.Target, ago(c.At))
		}
		if note := row[len(row)-1]; note != "" {
			text += ": " + note
		}
		_, _ = fmt.Fprintln(w, term.Hang("  "+row[0]+"  ", term.SafeLine(text), width))
	}
}

func showGit(w io.Writer, s *api.ShowRunResponse, width int) {
	switch g := s.Git; {
	case g != nil:
		state := "clean"
		if g.Dirty {
			state = fmt.Sprintf("not committed: %d changed, %d untracked", g.Changed, g.Untracked)
		}
		switch {
		case g.Branch == "":
			state = "on no branch, " + state
		case g.Branch != s.Run.Branch:
			state = "on branch " + term.SafeLine(g.Branch) + ", " + state
		}
		_, _ = fmt.Fprintf(w, "\n%s\n", term.Hang("git: ", fmt.Sprintf("%s, %d ahead, %d behind its base", state, g.Ahead, g.Behind), width))
	case s.GitProblem != "":
		_, _ = fmt.Fprintf(w, "\n%s\n", term.Hang("git: ", term.SafeLine(s.GitProblem), width))
	}
}
