package supervisor

import (
	"context"

	"agency"
)

// An agent in a sandbox starts runs from its own commits. What agency does outside of the sandbox for
// such a run must not give the agent more than its sandbox does.

// LocateInside returns where a run begins that the agent of the run by requests from its sandbox: in
// the repository and the worktree of by. Its agency.toml is that of the commit that by began from,
// since the agent may have written another one.
func (ps *Projects) LocateInside(ctx context.Context, by *agency.Run, base string) (*Place, error) {
	at, err := ps.Locate(ctx, by.Worktree, "", base)
	if err != nil {
		return nil, err
	}
	repo := at.Repo
	repo.Toplevel = ""
	at.project, err = ps.read(ctx, repo, by.Commit)
	at.Project = at.project.Project
	return at, err
}

// hidesRemote reports whether the branch that an agent in a sandbox wants has the name by which git
// knows a branch of a remote.
func (pl *planner) hidesRemote(ctx context.Context, p *NewRun) (bool, error) {
	if p.AskedBy == nil || p.Spec.Branch == "" {
		return false, nil
	}
	_, err := pl.git.ResolveCommit(ctx, p.repo.Root, "refs/remotes/"+p.Spec.Branch)
	if agency.IsCode(err, agency.CodeBadRef) {
		return false, nil
	}
	return err == nil, err
}

// planInside is planSetup for a run that an agent in a sandbox requests. It refuses everything that
// the repository wants done, because that would be done outside of the sandbox.
func planInside(project *agency.Project, without string) error {
	if !project.NeedsTrust() {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "an agent in a sandbox may not start what this repository wants done in new worktrees, which is done outside").
		WithHint("go without it: %s; or ask the user to start the run", without)
}

// chooseInside is choose for a run that an agent in a sandbox requests. The run gets the image of the
// agent itself: another one may hold what the agent cannot read, and building one runs commands outside.
func (im *images) chooseInside(ctx context.Context, p *NewRun) error {
	own := p.AskedBy.Attempt.Image
	switch {
	case own == nil:
		return agency.Errorf(agency.CodePermissionDenied, "%s is in no container, and may not start one from its sandbox", p.AskedBy.Ref()).
			WithHint("leave out the sandbox level")
	case p.Spec.Image != "" && p.Spec.Image != own.Name:
		return agency.Errorf(agency.CodePermissionDenied, "%s may not start a container of the image %q from its sandbox, only of %q", p.AskedBy.Ref(), p.Spec.Image, own.Name).
			WithHint("leave out the image")
	}
	var err error
	p.Spec.Image = own.Name
	if p.image, err = im.sandbox.CheckImage(ctx, p.Env, own.Name); err == nil {
		p.image.From = own.From
	}
	return err
}
