package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/plain"
)

// reviewOptions are the flags and dependencies of agency review.
type reviewOptions struct {
	*command.Deps

	into        string
	comments    []string
	discard     []string
	send, again bool
	message     bool
	reviewed    []string
	unreviewed  []string
}

// NewReview returns the command agency review.
func NewReview(d *command.Deps) *cobra.Command {
	o := &reviewOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "review RUN|SESSION",
		Short:   "Show what a run or a session would bring into a branch",
		GroupID: "inspect",
		Long: `Shows what agency merge would land: commits, files, uncommitted changes, conflicts
with the target, known verdicts of its checks, and what is in the way; and the agent's report.
agency diff shows the changed lines. For a session, it shows the completed agents whose work no
other agent has.

--comment keeps comments on lines, even from several reviews, until --send sends them to the agent
as one message, as agency send does. A comment follows its lines; agency marks a comment whose lines
have changed since. --reviewed marks a file as reviewed until it changes.`,
		Example: `  agency review fix-login
  agency review fix-login --into develop
  agency review fix-login --comment "login.go:12=check the error"
  agency review fix-login --comment "login.go:20-24=too long"
  agency review fix-login --send
  agency review fix-login --reviewed login.go
  agency review fix-login --discard-comment 2`,
		Args: command.Takes("RUN"),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "the target `BRANCH` (default: as for agency merge)")
	f.StringArrayVar(&o.comments, "comment", nil, "comment on a line, `FILE:LINE=TEXT`; FILE:FIRST-LAST=TEXT is for several lines, FILE:-LINE=TEXT for a deleted one (repeatable)")
	f.BoolVar(&o.send, "send", false, "send the comments to the agent as one message")
	f.BoolVar(&o.again, "again", false, "with --send: send even comments that may have reached the agent before")
	f.BoolVar(&o.message, "message", false, "print only the message that --send would send")
	f.StringArrayVar(&o.discard, "discard-comment", nil, "take back the comment `NUMBER`; all takes back every one that is not sent (repeatable)")
	f.StringArrayVar(&o.reviewed, "reviewed", nil, "mark `FILE` as reviewed until it changes; all marks every one (repeatable)")
	f.StringArrayVar(&o.unreviewed, "unreviewed", nil, "take the mark of `FILE` away; all takes every one (repeatable)")
	cmd.ValidArgsFunction = complete.Work(d)
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("discard-comment", complete.Reviewed(d, func(resp *api.ReviewRunResponse) []string {
		numbers := []string{"all"}
		for i := range resp.Comments {
			numbers = append(numbers, complete.Described(strconv.Itoa(resp.Comments[i].Number), resp.Comments[i].Text))
		}
		return numbers
	}))
	for _, name := range []string{"reviewed", "unreviewed"} {
		_ = cmd.RegisterFlagCompletionFunc(name, complete.Reviewed(d, func(resp *api.ReviewRunResponse) []string {
			paths := []string{"all"}
			for _, f := range resp.Files {
				paths = append(paths, f.Path)
			}
			return paths
		}))
	}
	return cmd
}

func (o *reviewOptions) run(cmd *cobra.Command, args []string) error {
	commenting := len(o.comments) > 0 || len(o.discard) > 0 || o.send || o.again
	if len(o.reviewed) > 0 || len(o.unreviewed) > 0 {
		if commenting || o.message || len(o.reviewed) > 0 && len(o.unreviewed) > 0 {
			return agency.Errorf(agency.CodeUsage, "--reviewed and --unreviewed stand alone").WithHint("agency review --help")
		}
		return o.mark(cmd.Context(), args[0])
	}
	if commenting {
		return o.comment(cmd.Context(), args[0])
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.ReviewRun, api.ReviewRunRequest{Run: args[0], Into: o.into, Env: o.Env, Config: o.CallerConfig()})
	if agency.IsCode(err, agency.CodeRunNotFound) && !o.message {
		return o.session(cmd.Context(), args[0], err)
	}
	if err != nil {
		return err
	}
	if o.message && resp.Message == "" {
		return agency.Errorf(agency.CodeInvalidState, "%s has no comments to send", resp.Run.Ref()).
			WithHint(`make one: agency review %s --comment "FILE:LINE=TEXT"`, resp.Run.Ref())
	}
	if o.message {
		return o.Print(map[string]any{"message": resp.Message}, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeText(resp.Message)) })
	}
	return o.Print(resp, func(w io.Writer) {
		writeReview(w, &resp, o.Columns())
		if command := checkCommand(&resp, o.into); command != "" {
			o.Chat("run the checks: %s", command)
		}
		if resp.Message != "" {
			o.Chat("send the comments: agency review %s --send", resp.Run.Ref())
		}
		if resp.Obstacle == "" {
			o.Chat("land it: agency merge %s", resp.Run.Ref())
		} else if resp.Hint != "" {
			o.Chat("agency: hint: %s", term.SafeLine(resp.Hint))
		}
	})
}

// session reviews the session with a name; when there is none, it returns noRun.
func (o *reviewOptions) session(ctx context.Context, ref string, noRun error) error {
	resp, err := command.Call(ctx, o.Deps, api.ReviewSession, api.ReviewSessionRequest{
		Session: ref, Dir: o.Dir, Into: o.into, Env: o.Env, Config: o.CallerConfig(),
	})
	if agency.IsCode(err, agency.CodeSessionNotFound) {
		return noRun
	}
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		for i := range resp.Reviews {
			if i > 0 {
				_, _ = fmt.Fprintln(w)
			}
			writeReview(w, &resp.Reviews[i], o.Columns())
		}
		if len(resp.Parts) > 0 {
			_, _ = fmt.Fprintln(w)
		}
		for _, line := range command.Parts(resp.Parts) {
			_, _ = fmt.Fprintln(w, line)
		}
		o.Chat("land them: agency merge %s", plain.ShellWord(ref))
	})
}

func writeReview(w io.Writer, v *api.ReviewRunResponse, width int) {
	line := func(head, text string) { _, _ = fmt.Fprintln(w, term.Hang(head, term.SafeLine(text), width)) }
	r := &v.Run
	line("run:          ", fmt.Sprintf("%s  %s %s", r.Ref(), r.Status.Mark(), r.Status))
	if v.Target != "" {
		where := ""
		if v.Checkout != "" {
			where = ", checked out in " + v.Checkout
		}
		line("target:       ", fmt.Sprintf("%s, by %s%s", v.Target, v.Method, where))
	}
	if v.Summary != "" {
		line("summary:      ", v.Summary)
	}
	if v.HowToTest != "" {
		line("how to test:  ", v.HowToTest)
	}
	for _, risk := range v.Risks {
		line("risk:         ", risk)
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", command.Count(len(v.Commits), "commit"))
	for i := range v.Commits {
		c := &v.Commits[i]
		line(fmt.Sprintf("  %.12s  ", c.ID), c.Subject)
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", command.Count(len(v.Files), "file"))
	writeChanges(line, v)
	if len(v.Checks) > 0 {
		_, _ = fmt.Fprintf(w, "\nchecks of %s\n", term.SafeLine(v.Target))
		for i := range v.Checks {
			c := &v.Checks[i]
			line(fmt.Sprintf("  %s %-8s ", checkMark(c.State), c.State), c.Name+"  "+knownNote(c))
		}
	}
	if len(v.Comments) > 0 {
		_, _ = fmt.Fprintln(w)
		writeComments(w, v.Comments, width)
	}
	landed := false
	for i := range v.Landings {
		l := &v.Landings[i]
		if l.State == agency.LandingFailed {
			continue
		}
		if !landed {
			_, _ = fmt.Fprintln(w, "\nlandings")
			landed = true
		}
		line("  ", fmt.Sprintf("%s  %s  %s  %.12s", l.ID, l.State, l.Target, l.Candidate))
	}
	if v.Obstacle != "" {
		_, _ = fmt.Fprintln(w)
		line("in the way:   ", v.Obstacle)
	}
}

// writeChanges lists the files that would land, and the repositories in them that cannot.
func writeChanges(line func(head, text string), v *api.ReviewRunResponse) {
	for _, f := range v.Files {
		text := f.Path
		if slices.Contains(v.Uncommitted, f) || slices.ContainsFunc(v.Uncommitted, func(u agency.FileChange) bool { return u.Path == f.Path }) {
			text += "  (not committed)"
		}
		if slices.Contains(v.Conflicts, f.Path) {
			text += "  (conflict)"
		}
		if slices.Contains(v.Reviewed, f.Path) {
			text += "  (reviewed)"
		}
		line("  "+f.Status+"  ", text)
	}
	for _, nested := range v.Nested {
		line("  !  ", nested+"  (a repository of its own, with work that cannot land)")
	}
}

func checkMark(s agency.CheckState) string {
	switch s {
	case agency.CheckState(agency.CheckPassed):
		return "✓"
	case agency.CheckNotRun:
		return "·"
	case agency.CheckRunning:
		return "●"
	case agency.CheckHeld:
		return "◐"
	default:
		return "✕"
	}
}

// knownNote returns more details about a check.
func knownNote(c *agency.KnownCheck) string {
	switch {
	case c.State == agency.CheckHeld:
		return "the work changes what it runs"
	case c.Runs > 1 && c.State == agency.CheckState(agency.CheckPassed):
		return fmt.Sprintf("flaky: passed at try %d", c.Runs)
	default:
		return c.Reason
	}
}

// checkCommand returns the command that runs the checks without a lasting verdict; empty when there
// are none.
func checkCommand(v *api.ReviewRunResponse, into string) string {
	open := func(c agency.KnownCheck) bool {
		return c.State != agency.CheckRunning && !agency.Verdict(c.State).Lasts()
	}
	if len(v.Conflicts) > 0 || !slices.ContainsFunc(v.Checks, open) {
		return ""
	}
	words := "agency verify " + v.Run.Ref() + " --merged"
	if into != "" {
		words += " --into " + plain.ShellWord(into)
	}
	if len(v.Uncommitted) > 0 {
		words += " --include-uncommitted"
	}
	if v.Code == agency.CodeApprovalRequired {
		words += " --approve"
	}
	return words
}
