package supervisor

import (
	"context"
	"slices"
	"strings"

	"agency"
)

// addChecks adds the checks of a project to what the user is asked to trust. It returns the hashes
// that are then trusted one by one: of the setup and of the checks.
func addChecks(t *agency.SetupTrust, p projectFile, read reading) (hashes []string, err error) {
	hashes = hashesOf(t.Hash)
	if len(p.Checks) == 0 {
		return hashes, nil
	}
	t.Checks = checkLines(&p.Project)
	files, err := checkFiles(p, read)
	if err != nil {
		return hashes, err
	}
	for _, f := range files {
		if !slices.ContainsFunc(t.Files, func(known agency.SetupFile) bool { return known.Path == f.Path }) {
			t.Files = append(t.Files, f)
		}
	}
	t.Hash = trustHash(p.data, t.Files)
	if hash := trustHash(p.data, files); !slices.Contains(hashes, hash) {
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

// checkLines returns the checks of a project in words.
func checkLines(p *agency.Project) []string {
	lines := []string{}
	for i := range p.Checks {
		lines = append(lines, p.Checks[i].Name+": "+strings.Join(p.Checks[i].Run, " "))
	}
	return lines
}

// checkFiles returns the files of the repository that its checks and its setup name: a setup
// prepares the worktree in which checks run.
func checkFiles(p projectFile, read reading) ([]agency.SetupFile, error) {
	words := append(checkWords(p.Checks), fileWords(p.Setup)...)
	slices.Sort(words)
	return namedFiles(slices.Compact(words), "a check or the setup", read)
}

// hashesOf returns a list of one hash; nil when the hash is empty, because there is nothing to trust.
func hashesOf(hash string) []string {
	if hash == "" {
		return nil
	}
	return []string{hash}
}

// atCommit reads the project configuration of a commit.
func (ps *Projects) atCommit(ctx context.Context, repo agency.Repo, commit string) (projectFile, error) {
	repo.Toplevel, repo.Hooks = "", "" // not the checkout's
	return ps.read(ctx, repo, commit)
}

// trustOfTarget is trust for the checks of a branch, and the setup that prepares for them.
func (ps *Projects) trustOfTarget(ctx context.Context, req TrustRequest) (agency.Repo, agency.SetupTrust, []string, error) {
	repo, err := ps.git.Discover(ctx, req.Dir)
	fail := func(err error) (agency.Repo, agency.SetupTrust, []string, error) {
		return repo, agency.SetupTrust{}, nil, err
	}
	if err != nil {
		return fail(err)
	}
	commit, err := ps.git.ResolveCommit(ctx, req.Dir, "refs/heads/"+req.Target)
	if err != nil {
		return fail(err)
	}
	p, err := ps.atCommit(ctx, repo, commit)
	if err != nil {
		return fail(err)
	}
	read := ps.inCommit(ctx, repo, commit)
	t, err := wants(p, read, req.Target)
	if err != nil {
		return fail(err)
	}
	hashes, err := addChecks(&t, p, read)
	if err != nil {
		return fail(err)
	}
	return repo, t, hashes, ps.decide(ctx, repo, &t, hashes...)
}
