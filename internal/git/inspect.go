package git

import (
	"context"
	"fmt"
	"strings"

	"agency"
)

// Inspect compares a worktree with the commit it began at. It changes nothing, not even git's
// index. Without baseCommit, or before the first commit, nothing is ahead or behind. A folder that
// cannot be read, and so may hold anything, is an error. Work in a repository inside the worktree
// counts as a change, and so does one that cannot be read.
func (g *Git) Inspect(ctx context.Context, repo agency.Repo, worktree, baseCommit string) (agency.GitFacts, error) {
	facts, err := g.inspect(ctx, repo, worktree)
	if err != nil {
		return agency.GitFacts{}, fmt.Errorf("inspect worktree %s: %w", worktree, err)
	}
	if baseCommit == "" || facts.Head == "" {
		return facts, nil
	}
	out, err := g.run(ctx, repo, "rev-list", "--left-right", "--count", "--end-of-options", baseCommit+"..."+facts.Head, "--")
	if err != nil {
		return agency.GitFacts{}, fmt.Errorf("compare worktree %s with commit %s: %w", worktree, baseCommit, err)
	}
	if _, err := fmt.Sscanf(out, "%d\t%d\n", &facts.Behind, &facts.Ahead); err != nil {
		return agency.GitFacts{}, fmt.Errorf("compare worktree %s with commit %s: read %q: %w", worktree, baseCommit, out, err)
	}
	return facts, nil
}

func (g *Git) inspect(ctx context.Context, repo agency.Repo, worktree string) (agency.GitFacts, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return agency.GitFacts{}, err
	}
	defer s.close()
	e, err := s.entries(ctx)
	if err != nil {
		return agency.GitFacts{}, err
	}
	out, err := s.run(ctx, "", "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
	if err != nil {
		return agency.GitFacts{}, err
	}
	facts, err := parseStatus(out)
	if err == nil && facts.Head == "" { // of a branch that git cannot read, too
		facts.Head, err = s.head(ctx)
	}
	if err != nil {
		return agency.GitFacts{}, err
	}
	s.findNested(ctx, e)
	facts.Changed += len(s.nested)
	facts.Dirty = facts.Changed+facts.Untracked > 0
	return facts, nil
}

// parseStatus reads the output of status --porcelain=v2 --branch -z.
func parseStatus(out string) (agency.GitFacts, error) {
	var facts agency.GitFacts
	for rest := out; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\x00")
		kind, fields, _ := strings.Cut(line, " ")
		switch kind {
		case "#":
			switch key, value, _ := strings.Cut(fields, " "); {
			case key == "branch.oid" && value != "(initial)":
				facts.Head = value
			case key == "branch.head" && value != "(detached)":
				facts.Branch = value
			}
		case "2": // renamed: the path it had before follows
			_, rest, _ = strings.Cut(rest, "\x00")
			facts.Changed++
		case "1", "u":
			facts.Changed++
		case "?":
			facts.Untracked++
		default:
			return agency.GitFacts{}, fmt.Errorf("read status: unknown line %q", printable(line))
		}
	}
	facts.Dirty = facts.Changed+facts.Untracked > 0
	return facts, nil
}
