package git

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"agency"
)

// Inspect compares a worktree with the commit it began at. It changes nothing, not even git's
// index. Without baseCommit, or before the first commit, nothing is ahead or behind. A folder that
// cannot be read, and so may hold anything, is an error. Work in a repository inside the worktree
// counts as a change, and so does one that cannot be read.
func (g *Trees) Inspect(ctx context.Context, repo agency.Repo, worktree, baseCommit string) (agency.GitFacts, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return agency.GitFacts{}, fmt.Errorf("inspect worktree %s: %w", worktree, err)
	}
	defer s.close()
	// Usually the files name HEAD, and then all git processes run at the same time.
	guess, behind, ahead, failed := s.guessHead(), 0, 0, error(nil)
	var beside sync.WaitGroup
	if guess != "" {
		beside.Go(func() { behind, ahead, failed = g.compare(ctx, repo, baseCommit, guess) })
	}
	facts, err := s.facts(ctx)
	beside.Wait()
	if err != nil {
		return agency.GitFacts{}, fmt.Errorf("inspect worktree %s: %w", worktree, err)
	}
	if facts.Head != guess {
		behind, ahead, failed = g.compare(ctx, repo, baseCommit, facts.Head)
	}
	if failed != nil {
		return agency.GitFacts{}, fmt.Errorf("compare worktree %s with commit %s: %w", worktree, baseCommit, failed)
	}
	facts.Behind, facts.Ahead = behind, ahead
	return facts, nil
}

// counts holds how many commits only the one, and only the other of two commits has.
type counts struct{ behind, ahead int }

// mostCounts is for how many pairs of commits the counts are kept.
const mostCounts = 4096

// compare counts the commits that only base has, and those that only head has. An empty name has
// none. It compares two commits only once: their history does not change, unless another program
// cuts it off.
func (g *Trees) compare(ctx context.Context, repo agency.Repo, base, head string) (behind, ahead int, err error) {
	if base == "" || head == "" || base == head {
		return 0, 0, nil
	}
	cuts, _, seen := signsOf([]string{filepath.Join(repo.CommonDir, "shallow"), filepath.Join(repo.CommonDir, "info", "grafts")})
	key := repo.CommonDir + "\x00" + base + head + cuts
	if certain := seen && sha().MatchString(base) && sha().MatchString(head); certain {
		g.mu.Lock()
		known, ok := g.counts[key]
		g.mu.Unlock()
		if ok {
			return known.behind, known.ahead, nil
		}
		defer func() {
			if err == nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if len(g.counts) >= mostCounts {
					clear(g.counts)
				}
				g.counts[key] = counts{behind, ahead}
			}
		}()
	}
	out, err := g.run(ctx, repo, "rev-list", "--left-right", "--count", "--end-of-options", base+"..."+head, "--")
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(out, "%d\t%d\n", &behind, &ahead); err != nil {
		return 0, 0, fmt.Errorf("read %q: %w", out, err)
	}
	return behind, ahead, nil
}

// facts returns what Inspect returns, without the comparison.
func (s *saver) facts(ctx context.Context) (agency.GitFacts, error) {
	var status string
	var failed error
	var beside sync.WaitGroup
	ask := func() {
		status, failed = s.run(ctx, "", "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
	}
	beside.Go(ask)
	e, err := s.listed(ctx)
	beside.Wait()
	if err == nil && len(e.assumed) > 0 {
		if err = s.doubt(ctx, e); err == nil {
			ask() // it had left out the files that were assumed unchanged
		}
	}
	if err := cmp.Or(err, failed); err != nil {
		return agency.GitFacts{}, err
	}
	facts, err := parseStatus(status)
	if err == nil && facts.Head == "" { // also on a branch that git cannot read
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

// Clean reports whether a worktree has no change of a tracked file, staged or not.
func (g *Trees) Clean(ctx context.Context, repo agency.Repo, worktree string) (bool, error) {
	facts, err := g.Inspect(ctx, repo, worktree, "")
	return err == nil && facts.Changed == 0, err
}
