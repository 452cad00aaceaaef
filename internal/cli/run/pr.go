package run

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/forge"
	"agency/internal/plain"
)

// prOptions are the flags and dependencies of agency pr.
type prOptions struct {
	remoteOptions

	into                                                 string
	draft, ready, merge, closing, status, comments, send bool
}

// NewPR returns the command agency pr.
func NewPR(d *command.Deps) *cobra.Command {
	o := &prOptions{remoteOptions: remoteOptions{Deps: d}}
	cmd := command.New(cobra.Command{
		Use:     "pr RUN",
		Short:   "Make a pull request of a run, and follow it",
		GroupID: "run",
		Long: `Pushes the commits of a run as agency push does, and makes a pull request of them,
or updates the run's pull request. Title and text come from the commits, the agent's report and the
checks. agency looks for the pull request of the branch before it makes one, so that there are never
two.

agency runs gh for GitHub and glab for GitLab, from your PATH and with your login. Without glab, and
on Gitea and Forgejo, it makes the pull request by git push. Set [forge] kind for a host whose name
does not tell which forge it is.`,
		Example: `  agency pr fix-login --draft
  agency pr fix-login --status
  agency pr fix-login --comments --send
  agency pr fix-login --merge`,
		Args:              command.Takes("RUN"),
		ValidArgsFunction: complete.Runs(d),
	}, o.run)
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "the target `BRANCH` (default: as for agency merge)")
	f.BoolVar(&o.draft, "draft", false, "make the pull request as a draft")
	f.BoolVar(&o.ready, "ready", false, "mark the draft as ready for review")
	f.BoolVar(&o.merge, "merge", false, "merge the pull request, if it has exactly the commits of the run")
	f.BoolVar(&o.closing, "close", false, "close the pull request without merging it")
	f.BoolVar(&o.status, "status", false, "print its state, checks and reviews; once it is merged, the run is merged too")
	f.BoolVar(&o.comments, "comments", false, "print the unresolved comments of reviewers")
	f.BoolVar(&o.send, "send", false, "with --comments: send them to the agent as one message")
	cmd.MarkFlagsMutuallyExclusive("draft", "ready", "merge", "close", "status", "comments")
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	return cmd
}

// prResult is what agency pr prints.
type prResult struct {
	Run      api.Run            `json:"run"`
	PR       agency.PullRequest `json:"pr"`
	Created  bool               `json:"created"`
	Comments []forge.Comment    `json:"comments"` // untrusted; empty without --comments
	More     bool               `json:"more_comments"`
	Sent     bool               `json:"sent"` // the agent got the comments
}

// pulling is the work of a command on a pull request.
type pulling struct {
	*prOptions

	plan   api.PlanPRResponse
	site   forge.Site
	forge  forge.Forge
	result prResult
}

func (o *prOptions) run(cmd *cobra.Command, args []string) error {
	if o.send && !o.comments {
		return agency.Errorf(agency.CodeUsage, "--send sends comments").WithHint("agency pr %s --comments --send", args[0])
	}
	ctx, cancel := o.bounded(cmd.Context())
	defer cancel()
	p := &pulling{prOptions: o, result: prResult{Comments: []forge.Comment{}}}
	if err := p.run(ctx, args[0]); err != nil {
		return o.inTime(ctx, err)
	}
	return o.Print(p.result, func(w io.Writer) { p.print(w) })
}

// run does what the command asks for, and fills in the result.
func (p *pulling) run(ctx context.Context, run string) (err error) {
	o := p.prOptions
	if p.plan, err = command.Call(ctx, o.Deps, api.PlanPR, api.PlanPRRequest{Run: run, Remote: o.target(), Base: o.into}); err != nil {
		return err
	}
	remote, err := o.open(ctx, &p.plan.Place, p.plan.Run.BaseCommit)
	if err != nil {
		return err
	}
	defer func() { _ = remote.Close() }()
	if p.site, err = remote.Site(ctx, p.plan.Kind); err != nil {
		return err
	}
	if p.forge, err = remote.Forge(p.site); err == nil {
		err = p.act(ctx)
	}
	if agency.IsCode(err, agency.CodeForgeNotFound) && p.site.Kind != agency.ForgeGitHub && !o.ready && !o.merge && !o.closing && !o.status && !o.comments {
		err = p.byPush(ctx)
	}
	return err
}

// act does what the flags ask for, with the user's program for the forge.
func (p *pulling) act(ctx context.Context) error {
	switch {
	case p.ready, p.merge, p.closing, p.status, p.comments:
		pr, err := p.find(ctx)
		if err != nil {
			return err
		}
		if pr == nil {
			return agency.Errorf(agency.CodePRNotOpen, "%s has no pull request on %s", p.plan.Run.Ref(), p.site.Host).WithHint("make one: agency pr %s", p.plan.Run.Ref())
		}
		return p.change(ctx, pr)
	default:
		return p.create(ctx)
	}
}

// find returns the pull request of the run; nil when it has none.
func (p *pulling) find(ctx context.Context) (*forge.PR, error) {
	prs, err := p.forge.Find(ctx, p.plan.Branch)
	if err != nil {
		return nil, err
	}
	number := 0
	if p.plan.Run.PR != nil {
		number = p.plan.Run.PR.Number
	}
	pr := forge.Choose(prs, agency.PRMarker(p.plan.Run.ID), number)
	if pr == nil {
		return nil, nil //nolint:nilnil // the run has none
	}
	return pr, p.forge.Look(ctx, pr)
}

// create pushes the commits of the run, and makes a pull request unless there is one.
func (p *pulling) create(ctx context.Context) error {
	push, err := command.Call(ctx, p.Deps, api.PlanPush, api.PlanPushRequest{Run: string(p.plan.Run.ID), Remote: p.target()})
	if err != nil {
		return err
	}
	pr, err := p.find(ctx)
	if err != nil {
		return err
	}
	if pr != nil && !pr.State.Open() && (pr.State == agency.PRClosed || pr.Commit == push.Commit) {
		if err := p.record(ctx, pr); err != nil || pr.State == agency.PRMerged {
			return err
		}
		return p.notOpen(pr)
	}
	if _, err := p.pushPlan(ctx, &push); err != nil {
		return err
	}
	if pr == nil || !pr.State.Open() {
		made := p.forge.Create(ctx, forge.NewPR{Branch: p.plan.Branch, Base: p.plan.Base, Title: p.plan.Title, Body: p.plan.Body, Draft: p.draft})
		// It may exist all the same: another client made it, or the answer was lost.
		if pr, err = p.find(ctx); made != nil && (err != nil || pr == nil || !pr.State.Open()) {
			return made
		}
		if err == nil && pr == nil {
			err = agency.Errorf(agency.CodeForgeFailed, "%s made a pull request of %s and does not show it", p.site.Host, plain.Visible(p.plan.Branch)).
				WithHint("agency pr %s --status", p.plan.Run.Ref())
		}
		if err != nil {
			return err
		}
		p.result.Created = made == nil
	}
	return p.record(ctx, pr)
}

// change does what the flags ask for to a pull request, and reads it again.
func (p *pulling) change(ctx context.Context, pr *forge.PR) error {
	var err error
	switch {
	case p.status:
		return p.record(ctx, pr)
	case p.comments:
		return p.listComments(ctx, pr)
	case !pr.State.Open():
		if p.merge && pr.State == agency.PRMerged || p.closing && pr.State == agency.PRClosed {
			return p.record(ctx, pr)
		}
		if err := p.record(ctx, pr); err != nil {
			return err
		}
		return p.notOpen(pr)
	case p.ready && pr.State == agency.PRDraft:
		err = p.forge.Ready(ctx, pr)
	case p.closing:
		err = p.forge.Close(ctx, pr)
	case p.merge:
		err = p.mergePR(ctx, pr)
	}
	if err != nil {
		return err
	}
	if pr, err = p.find(ctx); err != nil || pr == nil {
		return err
	}
	return p.record(ctx, pr)
}

func (p *pulling) mergePR(ctx context.Context, pr *forge.PR) error {
	push, err := command.Call(ctx, p.Deps, api.PlanPush, api.PlanPushRequest{Run: string(p.plan.Run.ID), Remote: p.target()})
	if err != nil {
		return err
	}
	if pr.Commit != push.Commit {
		return agency.Errorf(agency.CodeSourceMoved, "#%d is at %.12s, and %s at %.12s", pr.Number, pr.Commit, p.plan.Run.Ref(), push.Commit).
			WithHint("push what the run has: agency pr %s", p.plan.Run.Ref())
	}
	return p.forge.Merge(ctx, pr, p.plan.Method, push.Commit)
}

func (p *pulling) notOpen(pr *forge.PR) error {
	return agency.Errorf(agency.CodePRNotOpen, "#%d of %s is %s", pr.Number, p.plan.Run.Ref(), pr.State).WithHint("reopen it there, if you want it: %s", plain.SafeURL(pr.URL))
}

// record asks the daemon to record what the forge shows.
func (p *pulling) record(ctx context.Context, pr *forge.PR) error {
	resp, err := command.Call(context.WithoutCancel(ctx), p.Deps, api.RecordPR, api.RecordPRRequest{
		Run: string(p.plan.Run.ID), Forge: pr.Forge, Number: pr.Number, URL: pr.URL, State: pr.State, Branch: pr.Branch, Base: pr.Base,
		Commit: pr.Commit, Checks: pr.Checks, Review: pr.Review,
	})
	if err == nil {
		p.result.Run, p.result.PR = resp.Run, *resp.Run.PR
	}
	return err
}

// byPush makes a pull request by a push with options, when no program reaches the forge.
func (p *pulling) byPush(ctx context.Context) error {
	plan, err := command.Call(ctx, p.Deps, api.PlanPush, api.PlanPushRequest{Run: string(p.plan.Run.ID), Remote: p.target()})
	if err != nil {
		return err
	}
	wanted := &forge.NewPR{Branch: p.plan.Branch, Base: p.plan.Base, Title: p.plan.Title, Body: p.plan.Body, Draft: p.draft}
	pushed, err := p.pushWith(ctx, &plan, func(push *forge.Push) { p.site.ByPush(push, wanted) })
	if err != nil {
		return err
	}
	number, url := forge.Made(pushed.Said)
	known := p.plan.Run.PR
	if number == 0 && known == nil {
		return agency.Errorf(agency.CodeForgeFailed, "%.12s is pushed, and %s names no pull request: %s", plan.Commit, p.site.Host, pushed.Said).
			WithHint("make it there: %s", plain.SafeURL("https://"+p.site.Host+"/"+p.site.Path))
	}
	pr := &forge.PR{PullRequest: agency.PullRequest{
		Forge: p.site.Kind, Number: number, URL: url, State: agency.PROpen, Branch: p.plan.Branch, Base: p.plan.Base, Commit: plan.Commit,
	}}
	if p.draft {
		pr.State = agency.PRDraft
	}
	if number == 0 || known != nil && known.Number == number {
		pr.PullRequest = *known
		pr.Commit = plan.Commit
	}
	p.result.Created = known == nil
	return p.record(ctx, pr)
}

func (p *pulling) listComments(ctx context.Context, pr *forge.PR) error {
	comments, more, err := p.forge.Comments(ctx, pr)
	if err != nil {
		return err
	}
	if err := p.record(ctx, pr); err != nil {
		return err
	}
	p.result.Comments, p.result.More = append(p.result.Comments, comments...), more
	if !p.send || len(comments) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Reviewers commented on your pull request #%d. Address these comments, commit, and report again.\n", pr.Number)
	for i := range comments {
		text.WriteString("\n" + heading(&comments[i]) + "\n")
		for line := range strings.Lines(strings.TrimSpace(plain.Visible(comments[i].Body))) {
			text.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if text.Len() > inputLimit {
		return agency.Errorf(agency.CodeUsage, "the comments have more than %d bytes", inputLimit).WithHint("resolve some of them first: %s", plain.SafeURL(pr.URL))
	}
	if _, err := command.Call(ctx, p.Deps, api.SendInput, api.SendInputRequest{Run: string(p.plan.Run.ID), Text: strings.TrimSpace(text.String())}); err != nil {
		return err
	}
	p.result.Sent = true
	return nil
}

// heading returns the author of a comment and its subject, on one line that is safe to show.
func heading(c *forge.Comment) string {
	author := plain.Visible(c.Author)
	if author == "" {
		author = "a deleted user"
	}
	if c.Path == "" {
		return term.SafeLine(author + ":")
	}
	if c.Line == 0 {
		return term.SafeLine(fmt.Sprintf("%s, %s:", author, c.Path))
	}
	return term.SafeLine(fmt.Sprintf("%s, %s:%d:", author, c.Path, c.Line))
}

func (p *pulling) print(w io.Writer) {
	pr, ref := &p.result.PR, p.plan.Run.Ref()
	if p.comments {
		for i := range p.result.Comments {
			c := &p.result.Comments[i]
			_, _ = fmt.Fprintf(w, "%s\n%s\n\n", heading(c), strings.TrimSpace(term.SafeText(c.Body)))
		}
		if p.result.More {
			p.Chat("agency: note: there are more: %s", term.SafeLine(pr.URL))
		}
		switch {
		case len(p.result.Comments) == 0:
			p.Chat("#%d of %s has no comments that are not resolved", pr.Number, ref)
		case p.result.Sent:
			p.Chat("sent to %s: %s", ref, command.Count(len(p.result.Comments), "comment"))
		}
		return
	}
	facts := []string{string(pr.State)}
	if pr.Checks != "" {
		facts = append(facts, "checks "+pr.Checks)
	}
	if pr.Review != "" {
		facts = append(facts, pr.Review)
	}
	_, _ = fmt.Fprintf(w, "%s has #%d, %s: %s\n", ref, pr.Number, term.SafeLine(strings.Join(facts, ", ")), term.SafeLine(pr.URL))
	if p.result.Run.Status == agency.Merged && pr.State == agency.PRMerged {
		p.Chat("%s is merged", ref)
	}
}
