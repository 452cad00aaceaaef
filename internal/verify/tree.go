package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// tree is a landing worktree of a repository: a place where checks run, one verification after the
// other. Files that git ignores stay in it, so that builds are fast.
type tree struct {
	*Verifier
	repo agency.Repo
	path string
	mark string // in the environment of every process that works in it
}

// open takes the first landing worktree of a repository in which no checks run, and makes it if
// needed. It waits while all of them are in use. The caller calls done. No process of an earlier
// verification works in it.
func (v *Verifier) open(ctx context.Context, repo agency.Repo, commit string) (t *tree, done func(), err error) {
	number, done, err := v.trees.take(ctx, repo.Fingerprint, max(v.Parallel(), 1))
	if err != nil {
		return nil, nil, err
	}
	t = v.treeOf(repo, numbered(repo.Fingerprint, number))
	if err := t.prepare(ctx, commit); err != nil {
		done()
		return nil, nil, err
	}
	return t, done, nil
}

// Trees returns the paths of the landing worktrees of a repository.
func (v *Verifier) Trees(repo agency.Repo) ([]string, error) {
	var paths []string
	names, err := v.treeNames()
	for _, name := range names {
		if name == repo.Fingerprint || strings.HasPrefix(name, repo.Fingerprint+"-") {
			paths = append(paths, v.treeOf(repo, name).path)
		}
	}
	return paths, err
}

// treeNames returns the names of the landing worktrees of all repositories.
func (v *Verifier) treeNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(v.Home, treesFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// numbered returns the name of a landing worktree. The first one has the name of the repository.
func numbered(fingerprint string, number int) string {
	if number == 0 {
		return fingerprint
	}
	return fmt.Sprintf("%s-%d", fingerprint, number+1)
}

// treeOf returns the landing worktree with a name.
func (v *Verifier) treeOf(repo agency.Repo, name string) *tree {
	path := filepath.Join(v.Home, treesFolder, name)
	return &tree{Verifier: v, repo: repo, path: path, mark: "AGENCY_CHECKING=" + path}
}

// treesFolder is the folder of the landing worktrees in the data root.
const treesFolder = "landing"

// endGrace is how long the processes of an earlier verification get to end.
const endGrace = 5 * time.Second

// end ends the processes of a verification that was killed with its daemon.
func (t *tree) end(ctx context.Context) error {
	left, err := t.EndTree(ctx, []string{t.mark}, endGrace)
	if err == nil && left > 0 {
		err = agency.Errorf(agency.CodeResources, "%d processes of an earlier check in %s do not end", left, t.path).WithHint("agency doctor")
	}
	return err
}

// prepare makes the worktree if it does not exist, or git does not know it.
func (t *tree) prepare(ctx context.Context, commit string) error {
	if err := t.end(ctx); err != nil {
		return err
	}
	at, err := t.Git.Worktree(ctx, t.repo, t.path)
	if err != nil || at == t.path {
		return err
	}
	if err := t.Room(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	if err := t.Git.RemoveWorktree(ctx, t.repo, t.path); err != nil { // left by a crash
		return err
	}
	if err := t.Git.AddDetached(ctx, t.repo, t.path, commit, t.mark); err != nil {
		return err
	}
	killpoint.At("checks.worktree")
	return nil
}

// Start ends the checks that a killed daemon left running. They have no verdict.
func (v *Verifier) Start(ctx context.Context) error {
	names, err := v.treeNames()
	for _, name := range names {
		if err := v.treeOf(agency.Repo{}, name).end(ctx); err != nil {
			v.Logger.Warn("end the checks of a killed daemon", "err", err)
		}
	}
	return err
}

// Stop does nothing: checks end with the requests that began them.
func (v *Verifier) Stop() {}

// places are the numbers of the landing worktrees of each repository that are in use. They may be
// used by several goroutines. The zero value has none.
type places struct {
	mu    sync.Mutex
	taken map[string][]int
	freed chan struct{} // closed when a number is free again; nil when nothing waits
}

// take takes the lowest number below most that a repository has free, and waits for one until ctx
// ends. The returned function gives it back.
func (p *places) take(ctx context.Context, repo string, most int) (number int, free func(), err error) {
	for {
		p.mu.Lock()
		for number := range most {
			if slices.Contains(p.taken[repo], number) {
				continue
			}
			if p.taken == nil {
				p.taken = map[string][]int{}
			}
			p.taken[repo] = append(p.taken[repo], number)
			p.mu.Unlock()
			return number, sync.OnceFunc(func() { p.free(repo, number) }), nil
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

func (p *places) free(repo string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[repo] = slices.DeleteFunc(p.taken[repo], func(other int) bool { return other == number })
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}
