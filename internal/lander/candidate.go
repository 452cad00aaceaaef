package lander

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/landing"
	"agency/internal/plain"
)

// candidate is a commit that a target can become, proven.
type candidate struct {
	source string // the commit that it brings in
	commit string
	files  []agency.FileChange
	empty  int             // commits of the source that a rebase leaves out, since the target has their content
	added  []agency.Commit // to the target
}

// candidate makes the commit that the target of a plan becomes, and proves it. Nothing moves.
func (pl *planner) candidate(ctx context.Context, p *plan, message string) (*candidate, error) {
	c := &candidate{}
	if p.same {
		return nil, orNothing(p, nil)
	}
	var err error
	if c.source, err = pl.seal(ctx, p); err != nil {
		return nil, err
	}
	has, facts := false, landing.Facts{}
	var unmade, unequal error
	err = together(
		func() (err error) { has, err = pl.Git.Descends(ctx, p.repo, p.targetOld, c.source); return err },
		func() error { unmade = pl.make(ctx, p, c, message); return nil },
		func() error { unequal = pl.sides(ctx, p, c.source, &facts); return nil },
	)
	if err != nil || has {
		return nil, orNothing(p, err)
	}
	if agency.IsCode(unequal, agency.CodeInvalidState) {
		return nil, unequal
	}
	if unmade != nil {
		return nil, pl.conflict(p, unmade)
	}
	on := false
	err = together(
		func() (err error) { on, err = pl.Git.Descends(ctx, p.repo, c.commit, p.targetOld); return err },
		func() (err error) { c.added, err = pl.Git.Commits(ctx, p.repo, p.targetOld, c.commit); return err },
		func() (err error) {
			facts.Candidate, err = pl.Git.Changed(ctx, p.repo, p.targetOld, c.commit)
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	c.files = make([]agency.FileChange, 0, len(facts.Candidate))
	for _, f := range facts.Candidate {
		c.files = append(c.files, agency.FileChange{Status: f.Status, Path: f.Path})
	}
	if len(c.files) == 0 && p.settings.Method != agency.LandMerge && p.settings.Method != agency.LandFF {
		return nil, orNothing(p, nil)
	}
	if unequal != nil {
		return c, unequal
	}
	if !on {
		return c, unproven(p, c, "it is not on top of %q", p.settings.Target)
	}
	if err := landing.Prove(facts); err != nil || p.settings.Method != agency.LandRebase {
		return c, err
	}
	return c, pl.proveRebase(ctx, p, c)
}

// proveRebase returns why the commits of a rebased candidate are not what the source's commits must
// become. Each of them must be there with the same patch id. Where lines around a change differ, or
// the target has a part of it, the patch id changes: then all of the files must be as one merge of
// both sides makes them.
func (pl *planner) proveRebase(ctx context.Context, p *plan, c *candidate) error {
	base := []string{}
	if p.base != "" {
		base = append(base, p.base)
	}
	made, err := pl.Git.Unmatched(ctx, p.repo, c.commit, c.source, append(base, p.targetOld)...)
	if err != nil || len(made) == 0 {
		return err
	}
	all, err := pl.Git.Commits(ctx, p.repo, p.from(), c.source)
	if err != nil {
		return err
	}
	if missing := len(all) - c.empty - len(c.added); missing > 0 {
		return unproven(p, c, "of the %d commits of %s it lacks %d", len(all), p.run.Ref(), missing)
	}
	merged, err := pl.Git.Squash(ctx, p.repo, p.env, p.targetOld, c.source, p.base, func() (string, error) { return "one merge\n", nil })
	if err == nil {
		var same bool
		if same, err = pl.sameTree(ctx, p.repo, merged, c.commit); same {
			return nil
		}
	}
	if err != nil && !agency.IsCode(err, agency.CodeMergeConflict) {
		return err
	}
	left, err := pl.Git.Unmatched(ctx, p.repo, c.commit, c.source, base...) // what the target has already
	if err != nil || len(left) == 0 {
		return err
	}
	return unproven(p, c, "the change of the commit %s is not in it", short(left[0]))
}

// seal returns the commit with everything of the run that lands.
func (pl *planner) seal(ctx context.Context, p *plan) (string, error) {
	s := &p.source
	if len(s.uncommitted) == 0 && len(s.nested) == 0 {
		return s.commit, nil
	}
	if len(s.nested) > 0 {
		return "", agency.Errorf(agency.CodeUncommitted, "%s holds other repositories with work of their own, which no commit of %s can hold: %s", p.run.Ref(), p.repo.Root, named(s.nested)).
			WithDetail("files", s.nested).WithHint("commit and push in them first: %s", plain.ShellWord(p.run.Worktree))
	}
	if p.settings.Uncommitted != agency.IncludeUncommitted {
		files := make([]string, 0, len(s.uncommitted))
		for _, f := range s.uncommitted {
			files = append(files, f.Path)
		}
		return "", agency.Errorf(agency.CodeUncommitted, "%s has %s not committed: %s", p.run.Ref(), count(len(files), "file"), named(files)).
			WithDetail("files", files).WithHint("land them too: agency merge %s --include-uncommitted; or ask the agent to commit: %s", p.run.Ref(), askCommand(p.run, "commit your work"))
	}
	tree, err := pl.Git.Tree(ctx, p.repo, s.sealed)
	if err != nil {
		return "", err
	}
	message := landing.Describe(p.run.Ref(), pl.summary(p.run), task(p.run), nil)
	return pl.Git.OnTop(ctx, p.repo, p.env, s.commit, tree, landing.WithTrailer(message, p.run.Handle))
}

// make makes the commit, by the method.
func (pl *planner) make(ctx context.Context, p *plan, c *candidate, message string) error {
	trailer := func(message string) string { return landing.WithTrailer(message, p.run.Handle) }
	if m := p.settings.Method; message != "" && (m == agency.LandFF || m == agency.LandRebase) {
		return agency.Errorf(agency.CodeUsage, "the method %s makes no commit of its own, so a message has no place", m).
			WithHint("leave --message out; or take another method: --method %s", agency.LandSquash)
	}
	switch p.settings.Method {
	case agency.LandFF:
		fits, err := pl.Git.Descends(ctx, p.repo, c.source, p.targetOld)
		if err == nil && !fits {
			err = agency.Errorf(agency.CodeTargetMoved, "%q has commits that %s lacks, so it cannot be moved forward to it", p.settings.Target, p.run.Ref()).
				WithHint("agency merge %s --method squash, or --method rebase", p.run.Ref())
		}
		c.commit = c.source
		return err
	case agency.LandRebase:
		var err error
		c.commit, c.empty, err = pl.Git.Rebase(ctx, p.repo, p.env, p.targetOld, c.source, p.base, trailer)
		return err
	case agency.LandMerge:
		if message == "" {
			message = fmt.Sprintf("Merge %s into %s\n", p.run.Branch, p.settings.Target)
		}
		var err error
		c.commit, err = pl.Git.Join(ctx, p.repo, p.env, p.targetOld, c.source, p.base, trailer(message))
		return err
	default: // squash
	}
	var err error
	c.commit, err = pl.Git.Squash(ctx, p.repo, p.env, p.targetOld, c.source, p.base, func() (string, error) {
		if message == "" {
			messages, err := pl.Git.Messages(ctx, p.repo, p.from(), p.source.commit)
			if err != nil {
				return "", err
			}
			message = landing.Describe(p.run.Ref(), pl.summary(p.run), task(p.run), messages)
		}
		return trailer(message), nil
	})
	return err
}

// summary returns what the agent of a run itself reported last.
func (pl *planner) summary(r *agency.Run) string {
	if report := r.Attempt.OwnReport(); report != nil {
		return report.Summary
	}
	return ""
}

func (pl *planner) conflict(p *plan, err error) error {
	if !agency.IsCode(err, agency.CodeMergeConflict) {
		return err
	}
	e := agency.AsError(err)
	return agency.Errorf(agency.CodeMergeConflict, "%s and %q: %s", p.run.Ref(), p.settings.Target, e.Message).WithDetail("files", e.Details["files"]).
		WithHint("let the agent solve it: %s", askCommand(p.run, "merge "+p.settings.Target+" into your branch, solve the conflicts, commit and report again"))
}

// askCommand returns the command that gives the agent of a run a task: a live agent gets a message,
// one that has ended begins another attempt.
func askCommand(r *agency.Run, task string) string {
	if r.Attempt.State.Final() {
		return "agency resume " + r.Ref() + " --prompt " + plain.ShellWord(task)
	}
	return "agency send " + r.Ref() + " " + plain.ShellWord(task)
}

// unproven returns the error for a candidate that is not what it must be.
func unproven(p *plan, c *candidate, format string, args ...any) error {
	return agency.Errorf(agency.CodeIntegrity, "the commit %s to land failed its check: "+format, append([]any{short(c.commit)}, args...)...).
		WithHint("nothing was moved; land it by hand: git merge %s", plain.ShellWord(p.run.Branch))
}

// sides fills in what both sides changed since their common commit. It finds that by other means
// than the candidate is made with, so that it can prove the candidate.
func (pl *planner) sides(ctx context.Context, p *plan, source string, facts *landing.Facts) error {
	bases, err := pl.meet(ctx, p, source)
	if err != nil {
		return err
	}
	if len(bases) == 0 {
		return agency.Errorf(agency.CodeInvalidState, "%s and %q have no commit in common", p.run.Ref(), p.settings.Target).
			WithHint("name the branch that it began at: --into BRANCH")
	}
	facts.Several = len(bases) > 1
	for _, base := range bases {
		var theirs, ours []agency.ChangedFile
		err := together(
			func() (err error) { theirs, err = pl.Git.Changed(ctx, p.repo, base, source); return err },
			func() (err error) { ours, err = pl.Git.Changed(ctx, p.repo, base, p.targetOld); return err },
		)
		if err != nil {
			return err
		}
		facts.Source, facts.Target = append(facts.Source, theirs...), append(facts.Target, ours...)
	}
	return nil
}

// meet returns the newest commits that both sides have: where their histories meet, and the base of
// the plan.
func (pl *planner) meet(ctx context.Context, p *plan, source string) ([]string, error) {
	bases, err := pl.Git.Bases(ctx, p.repo, p.targetOld, source)
	if err != nil || p.base == "" {
		return bases, err
	}
	if bases, err = pl.Git.Missing(ctx, p.repo, p.base, bases); err != nil {
		return nil, err
	}
	for _, base := range bases {
		if newer, err := pl.Git.Descends(ctx, p.repo, base, p.base); err != nil || newer {
			return bases, err
		}
	}
	return append(bases, p.base), nil
}

// orNothing returns err, or the error that there is nothing to land when err is nil.
func orNothing(p *plan, err error) error {
	if err != nil {
		return err
	}
	if p.landed != nil {
		return agency.Errorf(agency.CodeNothingToLand, "%s has landed in %q already, as %s", p.run.Ref(), p.settings.Target, short(p.landed.Candidate)).
			WithDetail("landing", p.landed.ID).WithHint("take it back: agency merge --undo %s", p.landed.ID)
	}
	e := agency.Errorf(agency.CodeNothingToLand, "%q has all of %s already", p.settings.Target, p.run.Ref())
	if p.source.commit == p.run.Commit {
		e = agency.Errorf(agency.CodeNothingToLand, "%s changed nothing since it began", p.run.Ref())
	}
	return e.WithHint("what it did: agency show %s", p.run.Ref())
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func named(files []string) string {
	const most = 5
	shown := make([]string, 0, most)
	for _, f := range files[:min(most, len(files))] {
		shown = append(shown, plain.Visible(f))
	}
	text := strings.Join(shown, ", ")
	if more := len(files) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
