package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agency"
	"agency/internal/supervisor"
)

// fakeGit keeps repositories, branches and worktrees in memory; the folders of worktrees are real.
type fakeGit struct {
	supervisor.Git // methods that no test calls

	AddWorktreeFunc func(path string) error
	ExcludeFunc     func() error
	DiffFunc        func() (agency.Diff, error)
	DiffStatFunc    func(to string) (agency.DiffStat, error)

	mu        sync.Mutex
	repos     map[string]agency.Repo // by root
	branches  map[string]string      // to their commits
	worktrees map[string]string      // to their branches
	made      map[string]string      // branches that AddWorktree made, to the worktrees they were made for
	moved     map[string]string      // worktrees that git moved, to their new places
	facts     agency.GitFacts        // of every worktree
	unmerged  bool
	merged    bool // all of each branch is in its base

	discoverErr  error  // of every repository
	discoverOnce error  // of the recorded repository, once
	programs     string // of the repositories
	unproven     error
	inspectErr   error
	fileErr      error // of every file of a commit
	worktreeErr  error // of a search for one
	nested       []string
	snapshots    []agency.Snapshot
	repaired     []string
}

const baseCommit = "0123456789012345678901234567890123456789"

func (*fakeGit) Import(context.Context, agency.Repo, string, string, string, string) error {
	return nil
}

func (g *fakeGit) Discover(_ context.Context, dir string) (agency.Repo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.discoverErr != nil {
		return agency.Repo{}, g.discoverErr
	}
	if err := g.discoverOnce; err != nil && !strings.HasSuffix(dir, "-copy") {
		g.discoverOnce = nil
		return agency.Repo{}, err
	}
	for root, repo := range g.repos {
		if dir == root || strings.HasPrefix(dir, root+"/") {
			return repo, nil
		}
	}
	return agency.Repo{}, agency.Errorf(agency.CodeNotGitRepo, "%s is in no git repository", dir)
}

func (g *fakeGit) Recall(ctx context.Context, dir string) (agency.Repo, error) {
	return g.Discover(ctx, dir)
}

func (g *fakeGit) ID(commonDir string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, repo := range g.repos {
		if repo.CommonDir == commonDir && repo.Root+"/.git" == commonDir {
			return repo.Fingerprint, nil
		}
	}
	return "", nil
}

func (g *fakeGit) EnsureID(repo agency.Repo, newID func() string) (string, error) {
	if repo.Fingerprint == "" {
		repo.Fingerprint = newID()
	}
	return repo.Fingerprint, g.ReplaceID(repo, repo.Fingerprint)
}

func (g *fakeGit) ReplaceID(repo agency.Repo, id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	repo.Fingerprint = id
	g.repos[repo.Root] = repo
	return nil
}

func (g *fakeGit) ResolveCommit(_ context.Context, _, ref string) (string, error) {
	if ref != "HEAD" {
		return "", agency.Errorf(agency.CodeBadRef, "%q names no commit", ref)
	}
	return baseCommit, nil
}

func (g *fakeGit) BranchAt(context.Context, string) (string, error) { return "main", nil }

func (g *fakeGit) OwnBranch(_ agency.Repo, branch string) string { return branch }

func (g *fakeGit) CheckBranch(_ context.Context, _ agency.Repo, branch string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.branches[branch]; ok {
		return agency.Errorf(agency.CodeBranchExists, "the branch %s exists", branch)
	}
	return nil
}

func (g *fakeGit) AddWorktree(ctx context.Context, repo agency.Repo, path, branch, commit string, _ agency.CheckoutPrograms) error {
	if g.AddWorktreeFunc != nil {
		if err := g.AddWorktreeFunc(path); err != nil {
			return err
		}
	}
	if err := g.CheckBranch(ctx, repo, branch); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.branches[branch], g.worktrees[path], g.made[branch] = commit, branch, path
	return os.MkdirAll(path, 0o700)
}

func (g *fakeGit) Worktree(_ context.Context, _ agency.Repo, path string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := path
	if moved := g.moved[path]; moved != "" {
		at = moved
	} else if _, err := os.Lstat(path); err != nil || g.worktrees[path] == "" {
		at = ""
	}
	return at, g.worktreeErr
}

func (g *fakeGit) RemoveWorktree(_ context.Context, _ agency.Repo, path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.worktrees, path)
	return os.RemoveAll(path)
}

func (g *fakeGit) Leftover(_ agency.Repo, path string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := os.Lstat(path)
	return err == nil || g.worktrees[path] != "" && g.moved[path] == "", nil
}

func (g *fakeGit) Made(_ context.Context, _ agency.Repo, path string) (bool, error) {
	_, err := os.Lstat(path)
	return err == nil, nil
}

func (g *fakeGit) HasBranch(_ context.Context, _ agency.Repo, branch string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.branches[branch] != "", nil
}

func (g *fakeGit) FreeClaims(context.Context) error { return nil }

func (g *fakeGit) DeleteBranch(_ context.Context, _ agency.Repo, branch string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.branches, branch)
	return nil
}

func (g *fakeGit) DeleteBranchIn(ctx context.Context, repo agency.Repo, branch, commit string) error {
	g.mu.Lock()
	at := g.branches[branch]
	g.mu.Unlock()
	if at != commit {
		return nil
	}
	return g.DeleteBranch(ctx, repo, branch)
}

func (g *fakeGit) MadeBranch(_ context.Context, _ agency.Repo, worktree, branch string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.branches[branch] != "" && g.made[branch] == worktree, nil
}

func (g *fakeGit) UndoBranch(ctx context.Context, repo agency.Repo, worktree, branch, commit string) (left bool, err error) {
	if made, _ := g.MadeBranch(ctx, repo, worktree, branch); !made {
		return false, nil
	}
	if err := g.DeleteBranchIn(ctx, repo, branch, commit); err != nil {
		return true, err
	}
	return g.HasBranch(ctx, repo, branch)
}

func (g *fakeGit) Exclude(agency.Repo, string) error {
	if g.ExcludeFunc != nil {
		return g.ExcludeFunc()
	}
	return nil
}

func (g *fakeGit) Ignored(context.Context, agency.Repo, string, []string) ([]string, error) {
	return nil, nil
}

// File reads a file in the repository's folder as if it were committed.
func (g *fakeGit) File(_ context.Context, repo agency.Repo, _, path string, _ int) ([]byte, bool, error) {
	if g.fileErr != nil {
		return nil, false, g.fileErr
	}
	data, err := os.ReadFile(filepath.Join(repo.Root, path))
	return data, err == nil, nil
}

func (g *fakeGit) Executable(_ context.Context, repo agency.Repo, _, path string) (found, runs bool, err error) {
	info, err := os.Stat(filepath.Join(repo.Root, path))
	return err == nil, err == nil && info.Mode().Perm()&0o111 != 0, nil
}

func (g *fakeGit) Inspect(context.Context, agency.Repo, string, string) (agency.GitFacts, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts, g.inspectErr
}

// Unmerged takes a snapshot for one of everything.
func (g *fakeGit) Diff(context.Context, agency.Repo, string, string, agency.DiffPart) (agency.Diff, error) {
	return g.DiffFunc()
}

func (g *fakeGit) DiffStat(_ context.Context, _ agency.Repo, _, _, to string) (agency.DiffStat, error) {
	return g.DiffStatFunc(to)
}

func (g *fakeGit) KeepTree(context.Context, agency.Repo, string, string) (string, error) {
	return strings.Repeat("7", 40), nil
}

func (g *fakeGit) Unmerged(_ context.Context, _ agency.Repo, _ string, known ...string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unmerged && len(known) == 0, nil
}

// Contained returns the commit of a branch that is merged.
func (g *fakeGit) Contained(_ context.Context, _ agency.Repo, branch, _, _ string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.merged {
		return "", nil
	}
	return g.branches[branch], nil
}

func (g *fakeGit) Snapshot(_ context.Context, _ agency.Repo, _, _, ref, message string) (agency.Saved, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var number int
	if _, err := fmt.Sscan(ref[strings.LastIndex(ref, "/")+1:], &number); err != nil {
		return agency.Saved{}, err
	}
	g.snapshots = append(g.snapshots, agency.Snapshot{Number: number, Ref: ref, Message: message})
	return agency.Saved{Ref: ref, Commit: baseCommit, Nested: g.nested}, nil
}

func (g *fakeGit) Prove(context.Context, agency.Repo, string, string, map[string]string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unproven
}

func (g *fakeGit) Holds(context.Context, agency.Repo, string, string) (bool, error) {
	return false, nil
}

func (g *fakeGit) Record(_ context.Context, repo agency.Repo) (agency.Repo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	repo.GitPrograms = g.programs
	return repo, nil
}

func (g *fakeGit) Snapshots(_ context.Context, _ agency.Repo, id agency.RunID) ([]agency.Snapshot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.snapshots), func(s agency.Snapshot) bool {
		return !strings.HasPrefix(s.Ref, agency.SnapshotRefs(id))
	}), nil
}

func (g *fakeGit) Repair(_ context.Context, _ agency.Repo, worktrees []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repaired = append(g.repaired, worktrees...)
	return nil
}
