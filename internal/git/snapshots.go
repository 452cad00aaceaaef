package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agency"
)

// Snapshots lists the snapshots of a run, oldest first.
func (g *Git) Snapshots(ctx context.Context, repo agency.Repo, id agency.RunID) ([]agency.Snapshot, error) {
	const format = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:subject)"
	prefix := agency.SnapshotRefs(id)
	out, err := g.run(ctx, repo, "for-each-ref", "--sort=version:refname", "--format="+format, prefix)
	if err != nil {
		return nil, fmt.Errorf("list snapshots of %s: %w", id, err)
	}
	return parseSnapshots(out, prefix), nil
}

// parseSnapshots reads the lines of for-each-ref. Refs that agency did not make are left out.
func parseSnapshots(out, prefix string) []agency.Snapshot {
	snapshots := []agency.Snapshot{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if len(fields) != 4 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimPrefix(fields[0], prefix))
		seconds, timeErr := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || timeErr != nil || number < 1 || fields[0] != prefix+strconv.Itoa(number) {
			continue
		}
		snapshots = append(snapshots, agency.Snapshot{
			Number: number, Ref: fields[0], Commit: fields[1], At: time.Unix(seconds, 0).UTC(), Message: fields[3],
		})
	}
	return snapshots
}

// Changes lists the files in which two commits differ.
func (g *Git) Changes(ctx context.Context, repo agency.Repo, from, to string) ([]agency.FileChange, error) {
	out, err := g.run(ctx, repo, changesArgs(from, to)...)
	if err != nil {
		return nil, fmt.Errorf("compare %.12s with %.12s: %w", from, to, err)
	}
	return parseChanges(out), nil
}

func changesArgs(from, to string) []string {
	return []string{"diff-tree", "-r", "-z", "--no-renames", "--name-status", "--end-of-options", from, to, "--"}
}

func parseChanges(out string) []agency.FileChange {
	changes := []agency.FileChange{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		changes = append(changes, agency.FileChange{Status: fields[i], Path: fields[i+1]})
	}
	return changes
}

// CreateBranch makes a branch at a commit. An existing branch is never moved: it is
// E_BRANCH_EXISTS.
func (g *Git) CreateBranch(ctx context.Context, repo agency.Repo, branch, commit string) error {
	_, err := g.do(ctx, writing(repo, "refs/heads/"+branch, "branch", "--no-track", "--", branch, commit))
	switch {
	case err == nil:
		return nil
	case said(err, "already exists"):
		return agency.Errorf(agency.CodeBranchExists, "the branch %q exists", branch).WithHint("give another name with --branch")
	default:
		return fmt.Errorf("create branch %q: %w", branch, err)
	}
}

// Branches lists the branches whose names begin with a prefix that ends in a slash, and that no
// worktree has checked out.
func (g *Git) Branches(ctx context.Context, repo agency.Repo, prefix string) ([]string, error) {
	out, err := g.run(ctx, repo, "for-each-ref", "--format=%(if)%(worktreepath)%(then)%(else)%(refname:lstrip=2)%(end)", "refs/heads/"+prefix)
	if err != nil {
		return nil, fmt.Errorf("list branches of %s: %w", repo.Root, err)
	}
	return strings.Fields(out), nil
}
