package supervisor

import (
	"bytes"
	"context"

	"agency"
)

// The agent in a sandbox starts runs from what it committed itself. What agency does outside with these
// files must lead no further than its sandbox.

// lfsConfig is the file of a commit in which git-lfs finds where to fetch from.
const lfsConfig = ".lfsconfig"

// checkInside refuses a run that an agent in a sandbox asks for if git would run a filter of the
// user's on files of the agent, which may configure what it does. git-lfs alone is known to fetch
// from where the user has it fetch from, unless the agent changed that.
func (s *Supervisor) checkInside(ctx context.Context, p *NewRun, commit string) error {
	if p.Inside == nil {
		return nil
	}
	filters, err := s.Git.Filters(ctx, p.repo)
	if err != nil {
		return err
	}
	for _, name := range filters {
		if name != "lfs" {
			return outsideFor(p.Inside, "the filter "+name+" of git")
		}
		was, _, err := s.Git.File(ctx, p.repo, p.Inside.Commit, lfsConfig, setupFileLimit)
		if err != nil {
			return err
		}
		is, found, err := s.Git.File(ctx, p.repo, commit, lfsConfig, setupFileLimit)
		if err != nil {
			return err
		}
		if found && !bytes.Equal(is, was) {
			return outsideFor(p.Inside, "git-lfs with a "+lfsConfig+" other than that of its start")
		}
	}
	return nil
}

// outsideFor returns the error for a program that an agent in a sandbox would have run outside.
func outsideFor(by *agency.Run, what string) error {
	return agency.Errorf(agency.CodePermissionDenied, "%s may not start a run here from its sandbox: %s would run outside, on files of the agent", by.Ref(), what).
		WithHint("ask the user to start it: agency report needs-input")
}

// imageInside refuses an image that the run in a sandbox whose agent asks does not have itself: it may
// hold what the agent cannot read, and building one runs commands outside.
func imageInside(p *NewRun) error {
	if p.Inside == nil {
		return nil
	}
	if own := p.Inside.Attempt.Image; own != nil && own.Name == p.Spec.Image {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s may not start a container of the image %q from its sandbox, only of its own", p.Inside.Ref(), p.Spec.Image).
		WithHint("leave out the sandbox level; or ask the user to start the run: agency report needs-input")
}
