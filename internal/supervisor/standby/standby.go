// Package standby keeps worktrees that are made ahead of the runs that will take them. A standby
// stays where it is when a run takes it, because a setup may have written its path into files.
package standby

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// Git makes and checks the worktrees.
type Git interface {
	// CheckoutKey returns a hash of what decides how the files of a commit come out, empty where
	// more than the commit decides.
	CheckoutKey(ctx context.Context, repo agency.Repo) (string, error)
	AddStandby(ctx context.Context, repo agency.Repo, path, commit string, begin func() (unlock func(), err error)) error
	// MoveStandby brings a standby to another commit, unless that would give another content than a
	// new worktree has, or one of the inputs differs.
	MoveStandby(ctx context.Context, repo agency.Repo, path, from, to string, inputs []string) (moved bool, err error)
	// StandbyState returns a value that changes when git's data about a standby, or its files, change.
	// The error is E_INVALID_STATE for a worktree that is on a branch, and E_NOT_GIT_REPO for what is not
	// a worktree of the repository.
	StandbyState(repo agency.Repo, path string) (string, error)
	CountFiles(repo agency.Repo, path string) (int, error)
	RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error
}

// Deps are the parts that a pool works with.
type Deps struct {
	Home  string // data root
	Git   Git
	Boot  string // identifies the time since the machine started
	NewID func() string
	// Lock serialises changes to a repository.
	Lock func(ctx context.Context, fingerprint string) (unlock func(), err error)
	// Taken reports whether a run has the worktree at a path, removed or not.
	Taken func(ctx context.Context, path string) (bool, error)
	// End ends the processes that carry a mark in their environment.
	End func(ctx context.Context, mark string) error
	// Count returns how many standbys a repository has at most.
	Count func() int
	// Spare returns why the machine has nothing to spare for work ahead; nil when it has.
	Spare func() error
	Log   *slog.Logger
	Now   func() time.Time
}

// Want describes the worktree that a run needs.
type Want struct {
	Repo   agency.Repo
	Base   string
	Commit string
	// Setup is done in a worktree ahead of its run; nil leaves it to the run, or there is none.
	Setup *Setup
}

// Setup is what a repository wants done in a worktree, as far as it can be done before the run is
// known.
type Setup struct {
	Key    string   // a hash of all that it depends on, but for the files of the commit
	Inputs []string // the files and folders of the commit that it depends on
	// Do does it in the worktree at path. log is a file for its output.
	Do func(ctx context.Context, path, log string) error
}

// The conditions of a standby.
const (
	quiet     = time.Second // without a new run, before work ahead begins
	manyFiles = 2000        // a repository with more has standbys even without a setup
	lookEvery = time.Minute // for age and room
)

// Pool holds the standbys of a data root. Run makes and removes them, one at a time.
type Pool struct {
	Deps

	mu     sync.Mutex
	ready  map[string][]*entry // by repository
	trash  []*entry            // to be removed
	making *entry
	wants  map[string]Want // by repository, the newest
	asked  time.Time       // when the newest came
	wake   chan struct{}   // holds one token when there is work
}

// New returns a pool without standbys. Load finds those that an earlier daemon left.
func New(deps Deps) *Pool {
	return &Pool{Deps: deps, ready: map[string][]*entry{}, wants: map[string]Want{}, wake: make(chan struct{}, 1)}
}

// Taken is a standby that a run takes. Its files are as a new worktree's of the commit, and so is
// what its setup made, if Setup is set.
type Taken struct {
	agency.Standby

	Log   string // of its setup; absent without one
	entry *entry
}

// Take returns a standby for a run, or nil when there is none. The caller ends it with Keep when
// the record has the run with its worktree, or with Return.
func (p *Pool) Take(ctx context.Context, want Want) *Taken {
	if !p.has(want.Repo.Fingerprint) {
		return nil
	}
	key, err := p.key(ctx, want)
	if err != nil || key == "" {
		return nil // a new worktree has the same error, with words for the user
	}
	for {
		e := p.claim(want, key)
		if e == nil {
			return nil
		}
		if state, err := p.Git.StandbyState(e.repo, e.Worktree); err != nil || state != e.state {
			p.Log.Warn("a standby worktree was changed", "worktree", e.Worktree, "err", err)
			p.discard(e)
			continue
		}
		if e.Commit != want.Commit && !p.move(ctx, e, want) {
			p.discard(e)
			return nil // the next would not fit either
		}
		return &Taken{Standby: e.Standby, Log: p.logOf(e), entry: e}
	}
}

// Return gives back a standby that no run took.
func (p *Pool) Return(t *Taken) {
	if err := p.write(t.entry); err != nil { // it may have been moved
		p.discard(t.entry)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready[t.entry.repo.Fingerprint] = append(p.ready[t.entry.repo.Fingerprint], t.entry)
}

// Keep forgets a standby that is the worktree of a run now.
func (p *Pool) Keep(t *Taken) { p.forget(t.entry) }

// Refill has standbys made for runs like one that has just begun in a worktree: where its setup can
// be done ahead, or where there are many files.
func (p *Pool) Refill(want Want, worktree string) {
	if p.Count() == 0 {
		return
	}
	if files, err := p.Git.CountFiles(want.Repo, worktree); want.Setup == nil && (err != nil || files <= manyFiles) {
		return
	}
	p.mu.Lock()
	p.wants[want.Repo.Fingerprint], p.asked = want, p.Now()
	p.mu.Unlock()
	p.stir()
}

// List returns all standbys.
func (p *Pool) List() []agency.Standby {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []agency.Standby{}
	for _, entries := range p.ready {
		for _, e := range entries {
			list = append(list, e.Standby)
		}
	}
	for _, e := range p.trash {
		e := e.Standby
		e.Ready = false
		list = append(list, e)
	}
	if p.making != nil {
		list = append(list, p.making.Standby)
	}
	slices.SortFunc(list, func(a, b agency.Standby) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Clear removes all standbys that are ready, and returns how many.
func (p *Pool) Clear(ctx context.Context) int {
	p.mu.Lock()
	entries := slices.Concat(slices.Collect(maps.Values(p.ready))...)
	clear(p.ready)
	clear(p.wants)
	p.mu.Unlock()
	for _, e := range entries {
		p.remove(ctx, e)
	}
	return len(entries)
}

// Run makes and removes standbys until ctx ends.
func (p *Pool) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		p.tidy(ctx)
		var due <-chan time.Time
		if want, wait, ok := p.next(); ok && wait <= 0 {
			p.fill(ctx, want)
			continue
		} else if ok {
			due = time.After(wait)
		}
		select {
		case <-p.wake:
		case <-due:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// next returns what to make next, and how long to wait before: work ahead begins when no run does.
func (p *Pool) next() (want Want, wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for fingerprint, want := range p.wants {
		if wait = quiet - p.Now().Sub(p.asked); wait <= 0 {
			delete(p.wants, fingerprint)
		}
		return want, wait, true
	}
	return want, 0, false
}

// fill makes the standbys that a repository lacks.
func (p *Pool) fill(ctx context.Context, want Want) {
	key, err := p.key(ctx, want)
	if err != nil || key == "" {
		p.drop(want.Repo.Fingerprint, func(*entry) bool { return true })
		return
	}
	p.drop(want.Repo.Fingerprint, func(e *entry) bool { return e.key != key })
	p.tidy(ctx)
	for p.count(want.Repo.Fingerprint) < p.Count() && ctx.Err() == nil && p.Spare() == nil {
		e := p.plan(want, key)
		if err := p.build(ctx, e, want); err != nil {
			p.Log.Warn("make a standby worktree", "repo", want.Repo.Root, "err", err)
			p.discard(e)
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = nil
}

func (p *Pool) plan(want Want, key string) *entry {
	id := p.NewID()
	e := &entry{
		Standby: agency.Standby{
			ID: id, Repo: want.Repo.Root, Worktree: filepath.Join(p.Home, "worktrees", want.Repo.Fingerprint, id),
			Base: want.Base, Commit: want.Commit, Setup: want.Setup != nil, MadeAt: p.Now(),
		},
		repo: want.Repo, key: key,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = e
	return e
}

// build makes one standby. It writes the file of the standby first: a daemon that finds a file of one
// that is not ready removes the rest.
func (p *Pool) build(ctx context.Context, e *entry, want Want) error {
	for _, dir := range []string{filepath.Dir(p.fileOf(e)), filepath.Dir(e.Worktree)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := p.write(e); err != nil {
		return err
	}
	killpoint.At("standby.intended")
	lock := func() (func(), error) { return p.Lock(ctx, e.repo.Fingerprint) }
	if err := p.Git.AddStandby(ctx, e.repo, e.Worktree, e.Commit, lock); err != nil {
		return err
	}
	killpoint.At("standby.made")
	if want.Setup != nil {
		if err := want.Setup.Do(ctx, e.Worktree, p.logOf(e)); err != nil {
			return err
		}
		killpoint.At("standby.setup")
	}
	ready, err := *e, error(nil) // List reads e meanwhile
	if ready.Files, err = p.Git.CountFiles(e.repo, e.Worktree); err != nil {
		return err
	}
	if ready.state, err = p.Git.StandbyState(e.repo, e.Worktree); err != nil {
		return err
	}
	ready.Ready = true
	if err := p.write(&ready); err != nil {
		return err
	}
	killpoint.At("standby.recorded")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = nil
	p.ready[e.repo.Fingerprint] = append(p.ready[e.repo.Fingerprint], &ready)
	return nil
}

// move brings a standby to the commit of a run.
func (p *Pool) move(ctx context.Context, e *entry, want Want) bool {
	e.Ready = false
	if err := p.write(e); err != nil {
		return false
	}
	killpoint.At("standby.moving")
	var inputs []string
	if want.Setup != nil {
		inputs = want.Setup.Inputs
	}
	moved, err := p.Git.MoveStandby(ctx, e.repo, e.Worktree, e.Commit, want.Commit, inputs)
	if err == nil && moved {
		e.Base, e.Commit, e.Ready = want.Base, want.Commit, true
		e.state, err = p.Git.StandbyState(e.repo, e.Worktree)
	}
	if err != nil {
		p.Log.Warn("move a standby worktree to another commit", "worktree", e.Worktree, "err", err)
	}
	return err == nil && moved
}

// key returns what decides whether a standby fits a run, which must have the same key; empty for a run
// that cannot have one.
func (p *Pool) key(ctx context.Context, want Want) (string, error) {
	key, err := p.Git.CheckoutKey(ctx, want.Repo)
	if err == nil && key != "" && want.Setup != nil {
		key += " " + want.Setup.Key
	}
	return key, err
}

func (p *Pool) has(fingerprint string) bool { return p.count(fingerprint) > 0 }

func (p *Pool) count(fingerprint string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready[fingerprint])
}

// claim takes a fitting standby out of those that are ready, preferably one at the commit of the run.
func (p *Pool) claim(want Want, key string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, best := p.ready[want.Repo.Fingerprint], -1
	for i, e := range list {
		if e.key == key && e.repo.CommonDir == want.Repo.CommonDir && (best < 0 || e.Commit == want.Commit) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	e := list[best]
	p.ready[want.Repo.Fingerprint] = slices.Delete(list, best, best+1)
	return e
}

// drop has standbys of a repository removed.
func (p *Pool) drop(fingerprint string, which func(*entry) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready[fingerprint] = slices.DeleteFunc(p.ready[fingerprint], func(e *entry) bool {
		gone := which(e)
		if gone {
			p.trash = append(p.trash, e)
		}
		return gone
	})
}

// discard has a standby removed that is not ready.
func (p *Pool) discard(e *entry) {
	p.mu.Lock()
	p.trash = append(p.trash, e)
	p.mu.Unlock()
	p.stir()
}

func (p *Pool) stir() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// tidy removes the standbys that are too old or to be removed, and all when the machine has nothing
// to spare or the user wants none.
func (p *Pool) tidy(ctx context.Context) {
	p.mu.Lock()
	fingerprints := slices.Collect(maps.Keys(p.ready))
	p.mu.Unlock()
	if len(fingerprints) > 0 {
		why := p.Spare()
		for _, fingerprint := range fingerprints {
			p.drop(fingerprint, func(e *entry) bool {
				return why != nil || p.Count() == 0 || p.Now().Sub(e.MadeAt) > agency.StandbyAge
			})
		}
	}
	p.mu.Lock()
	trash := slices.Clone(p.trash)
	p.mu.Unlock()
	for _, e := range trash {
		p.remove(ctx, e)
		p.mu.Lock()
		p.trash = slices.DeleteFunc(p.trash, func(other *entry) bool { return other == e })
		p.mu.Unlock()
	}
}

// remove removes a standby with its files. A worktree that is on a branch belongs to a run or to the
// user, even if there is a file about it: it stays, also when its HEAD cannot be read.
func (p *Pool) remove(ctx context.Context, e *entry) {
	err := p.End(ctx, "AGENCY_MAKING="+e.Worktree)
	if err == nil {
		_, state := p.Git.StandbyState(e.repo, e.Worktree)
		switch {
		case agency.IsCode(state, agency.CodeInvalidState):
		case state == nil, errors.Is(state, fs.ErrNotExist), agency.IsCode(state, agency.CodeNotGitRepo): // perhaps half made
			err = p.removeWorktree(ctx, e)
		default:
			err = state
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Warn("remove a standby worktree", "worktree", e.Worktree, "err", err)
		}
		return // the next daemon tries again
	}
	killpoint.At("standby.removed")
	p.forget(e)
}

func (p *Pool) removeWorktree(ctx context.Context, e *entry) error {
	unlock, err := p.Lock(ctx, e.repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	return p.Git.RemoveWorktree(ctx, e.repo, e.Worktree)
}
