package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agency"
)

// oldestMerge is the first git version that merges without a worktree.
const oldestMerge = "2.38"

// Merge makes a commit with the content of several commits, without a worktree: it merges the
// second into the first, the third into the result, and so on. It skips a commit that another one
// contains. No hook runs, nothing is signed, and no branch moves. A conflict is E_MERGE_CONFLICT
// with the files in its detail "files"; a git before 2.38 is E_GIT_NOT_FOUND.
func (g *Merges) Merge(ctx context.Context, repo agency.Repo, commits []string, message string) (string, error) {
	commits, err := g.independent(ctx, repo, commits)
	if err != nil {
		return "", err
	}
	merged := commits[0]
	for _, commit := range commits[1:] {
		if merged, err = g.merge(ctx, repo, merged, commit, message); err != nil {
			return "", err
		}
	}
	return merged, nil
}

// independent returns those commits that none of the others contains, in their order.
func (g *Merges) independent(ctx context.Context, repo agency.Repo, commits []string) ([]string, error) {
	out, err := g.run(ctx, repo, append([]string{"merge-base", "--independent"}, commits...)...)
	if err != nil {
		return nil, fmt.Errorf("compare %d commits to merge: %w", len(commits), err)
	}
	left := strings.Fields(out)
	kept := []string{}
	for _, commit := range commits {
		if slices.Contains(left, commit) && !slices.Contains(kept, commit) {
			kept = append(kept, commit)
		}
	}
	if len(kept) != len(left) || len(kept) == 0 {
		return nil, fmt.Errorf("compare %d commits to merge: git answers %.80q", len(commits), out)
	}
	return kept, nil
}

func (g *Merges) merge(ctx context.Context, repo agency.Repo, ours, theirs, message string) (string, error) {
	at, err := g.merging(ctx, repo)
	if err != nil {
		return "", err
	}
	tree, err := g.mergeTree(ctx, repo, at, ours, theirs)
	if err != nil {
		return "", err
	}
	s := saver{git: g.program, dir: repo.Root, site: at}
	return s.line(ctx, "commit-tree", "--no-gpg-sign", "-m", message, "-p", ours, "-p", theirs, tree)
}

// mergeTree makes the tree of a merge of two commits.
func (g *Merges) mergeTree(ctx context.Context, repo agency.Repo, at site, ours, theirs string) (string, error) {
	out, err := g.do(ctx, call{
		dir: repo.Root, site: at, answers: []int{1},
		settings: []string{"core.fsync=all", "core.fsyncMethod=batch"},
		args:     []string{"merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs},
	})
	if err != nil {
		if version, versionErr := g.Version(ctx); versionErr == nil && older(version, oldestMerge) {
			return "", agency.Errorf(agency.CodeGitNotFound, "git is version %s, and results can be merged by %s or newer", version, oldestMerge).
				WithHint("install a newer git, or let the agents that come after several others start from a branch of your own: base")
		}
		return "", fmt.Errorf("merge %.12s and %.12s: %w", ours, theirs, err)
	}
	tree, rest, _ := strings.Cut(out, "\x00")
	if rest != "" {
		return "", conflicting(rest)
	}
	return strings.TrimSpace(tree), nil
}

// conflicting returns the error about conflicting files. list holds their names, each followed by
// NUL.
func conflicting(list string) error {
	const most = 5
	files := strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")
	named := make([]string, 0, most)
	for _, name := range files[:min(len(files), most)] {
		named = append(named, printable(name))
	}
	words := strings.Join(named, ", ")
	if more := len(files) - most; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return agency.Errorf(agency.CodeMergeConflict, "conflict in %s", words).WithDetail("files", files)
}
