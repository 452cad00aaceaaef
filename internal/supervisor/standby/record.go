package standby

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/file"
)

// entry is a standby with what the pool knows about it.
type entry struct {
	agency.Standby

	repo  agency.Repo
	key   string
	state string // of git's data, when it was ready
}

// record is the content of the file of a standby.
type record struct {
	agency.Standby

	Fingerprint string `json:"fingerprint"`
	CommonDir   string `json:"common_dir"`
	GitConfig   string `json:"git_config"`
	GitPrograms string `json:"git_programs"`
	Key         string `json:"key"`
	State       string `json:"state"`
	Boot        string `json:"boot"`
}

func (p *Pool) fileOf(e *entry) string {
	return filepath.Join(p.Home, "standby", e.repo.Fingerprint, e.ID+".json")
}

func (p *Pool) logOf(e *entry) string {
	return filepath.Join(p.Home, "standby", e.repo.Fingerprint, e.ID+".log")
}

// write writes the file of a standby. A crash of the machine can leave the file without the files of
// the worktree, so the file names the boot in which it was written, and counts only in that boot.
func (p *Pool) write(e *entry) error {
	data, err := json.MarshalIndent(record{
		Standby: e.Standby, Fingerprint: e.repo.Fingerprint, CommonDir: e.repo.CommonDir,
		GitConfig: e.repo.GitConfig, GitPrograms: e.repo.GitPrograms, Key: e.key, State: e.state, Boot: p.Boot,
	}, "", "  ")
	if err != nil {
		return err
	}
	return file.WriteDurable(p.fileOf(e), append(data, '\n'))
}

// forget removes the files about a standby, and leaves its worktree.
func (p *Pool) forget(e *entry) {
	for _, path := range []string{p.logOf(e), p.fileOf(e)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.Log.Warn("forget a standby worktree", "worktree", e.Worktree, "err", err)
		}
	}
}

// Load finds the standbys of an earlier daemon. Those that a run has are only forgotten; Run
// removes those that were not ready, or that something changed.
func (p *Pool) Load(ctx context.Context) {
	paths, _ := filepath.Glob(filepath.Join(p.Home, "standby", "*", "*.json"))
	for _, path := range paths {
		e, boot, err := p.read(path)
		if err != nil {
			p.Log.Warn("read the file of a standby worktree", "path", path, "err", err)
			continue
		}
		taken, err := p.Taken(ctx, e.Worktree)
		if err != nil {
			p.Log.Warn("look for the run of a worktree", "worktree", e.Worktree, "err", err)
			continue // it proves nothing; the next daemon looks again
		}
		if taken {
			p.forget(e)
			continue
		}
		p.mu.Lock()
		if state, err := p.Git.StandbyState(e.repo, e.Worktree); e.Ready && boot == p.Boot && err == nil && state == e.state {
			p.ready[e.repo.Fingerprint] = append(p.ready[e.repo.Fingerprint], e)
		} else {
			p.trash = append(p.trash, e)
		}
		p.mu.Unlock()
	}
}

func (p *Pool) read(path string) (e *entry, boot string, err error) {
	data, err := file.ReadRegular(path, 1<<20)
	if err != nil {
		return nil, "", err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, "", err
	}
	repo := agency.Repo{Fingerprint: r.Fingerprint, Root: r.Repo, CommonDir: r.CommonDir, GitConfig: r.GitConfig, GitPrograms: r.GitPrograms}
	e = &entry{Standby: r.Standby, repo: repo, key: r.Key, state: r.State}
	if e.Worktree != filepath.Join(p.Home, "worktrees", repo.Fingerprint, e.ID) || p.fileOf(e) != path {
		return nil, "", errors.New("it is about another folder")
	}
	return e, r.Boot, nil
}
