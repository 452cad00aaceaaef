package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/supervisor/observe"
	"agency/internal/trace"
)

// build takes the steps of a creation in order. Without a setup the session starts while git makes
// the worktree, and its wrapper waits until the record has the worktree.
func (la *launcher) build(ctx context.Context, p *NewRun) error {
	l := &p.launching
	// A wrapper that dies early must not have the worktree undone while it is made.
	unlock, err := la.settler.lockUndo(ctx, p.run.ID)
	if err != nil {
		return err
	}
	unlock = sync.OnceFunc(unlock)
	defer unlock()
	session := func() error { return la.startSession(ctx, l) }
	defer func() {
		if l.waits {
			_ = session() // what is undone next must not start meanwhile
		}
	}()
	flushed := func() error { return nil }
	defer func() { _ = flushed() }() // the folder may be removed next
	return la.takeSteps(ctx, l, "create", []step{
		{name: stepFiles, more: true, do: func() error {
			if err := la.makeFiles(p); err != nil {
				return err
			}
			flushed = flush(ctx, filepath.Join(p.run.Dir, agency.TaskFile))
			return nil
		}},
		{name: stepWorktree, more: true, do: func() error {
			if p.standby == nil {
				if err := la.makePlace(p); err != nil {
					return err
				}
			}
			if p.setup == nil && startsEarly(p.run.Sandbox.Level) {
				session = la.startEarly(ctx, l)
			}
			return la.makeWorktree(ctx, p)
		}},
		{name: stepScaffold, do: func() error {
			if err := la.scaffold(p.run.Worktree, p.prompt, p.run.Attempt.CreatedAt); err != nil {
				return err
			}
			for i, f := range p.Files {
				if err := putFile(p.run.Worktree, l.files[i], f.Content); err != nil {
					return asAttachError(err, "attach it under another name, or take what is there out of the commit that the run starts from: git rm -r -- %s", agency.FilesDir)
				}
			}
			if err := l.prepareGit(); err != nil {
				return err
			}
			return flushed()
		}},
		{name: stepSetup, do: func() error { return la.doSetup(ctx, l) }},
		{name: stepSession, more: true, do: func() error { return session() }},
		{name: stepStarted, do: func() error {
			unlock()
			la.live.letGo(ctx, l.run.ID)
			return la.awaitStart(ctx, l)
		}},
	})
}

// startsEarly reports whether the session of a run at a level can start before its worktree is made:
// the other sandboxes read the worktree when they start.
func startsEarly(level agency.SandboxLevel) bool {
	return !level.Confines() || level == agency.SandboxProcess && !level.Shares()
}

// flush makes the prompt of a creation durable while git makes the worktree: it is stored nowhere
// else, while the store has the content of the other files. The caller records the files as
// written after the returned function, which waits for the end.
func flush(ctx context.Context, path string) (await func() error) {
	done := make(chan error, 1)
	go func() {
		defer trace.Begin(ctx, "flush the prompt")()
		done <- file.Flush(path)
	}()
	return sync.OnceValue(func() error {
		if err := <-done; err != nil {
			return asFileError(err)
		}
		return nil
	})
}

// makePlace makes the empty folder of a worktree.
func (la *launcher) makePlace(p *NewRun) error {
	if err := os.MkdirAll(filepath.Dir(p.run.Worktree), 0o700); err != nil {
		return asFileError(err)
	}
	if err := os.Mkdir(p.run.Worktree, 0o777); err != nil { //nolint:gosec // as git makes it
		return asFileError(err)
	}
	return nil
}

// programs returns what git may run while it makes the worktree of a run: for an agent in a sandbox
// nothing, since the files are as the agent committed them.
func (p *NewRun) programs() agency.CheckoutPrograms {
	switch {
	case p.AskedBy != nil:
		return agency.NoPrograms
	case p.setup != nil:
		return agency.AllPrograms
	default:
		return agency.OwnPrograms
	}
}

func (la *launcher) makeWorktree(ctx context.Context, p *NewRun) error {
	unlock, err := la.repos.Lock(ctx, p.repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	if err := la.git.Exclude(p.repo, "/"+agency.DotDir+"/"); err != nil {
		return err
	}
	if p.standby == nil {
		return la.git.AddWorktree(ctx, p.repo, p.run.Worktree, p.run.Branch, p.run.Commit, p.programs())
	}
	defer la.standbys.Keep(p.standby) // also when that fails: then the run is undone with its worktree
	if err := la.git.TakeStandby(ctx, p.repo, p.run.Worktree, p.run.Branch); err != nil {
		return err
	}
	killpoint.At("standby.taken")
	return nil
}

// makeFiles writes the run directory.
func (la *launcher) makeFiles(p *NewRun) error {
	r := p.run
	for _, dir := range []string{r.Dir, filepath.Join(r.Dir, "artifacts"), filepath.Join(observe.AttemptDir(r.Dir, 1), "logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return asFileError(err)
		}
	}
	spec, err := materialisedSpec(p)
	if err != nil {
		return err
	}
	inputs, err := indented(p.inputs)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		agency.TaskFile: p.prompt, "spec.json": spec, "inputs.json": inputs, "meta.yaml": metaYAML(r, p.prompt),
	} {
		if err := file.WriteAtomic(filepath.Join(r.Dir, name), data); err != nil {
			return asFileError(err)
		}
	}
	if p.standby != nil && p.standby.Setup {
		if err := os.Rename(p.standby.Log, filepath.Join(r.Dir, setupLog)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return asFileError(err)
		}
	}
	if err := la.views.writeFiles(r); err != nil { // if the record is lost from here on, it is rebuilt with this run
		return asFileError(err)
	}
	return linkAttempt(r)
}

// buildAttempt prepares the worktree and starts the agent.
func (la *launcher) buildAttempt(ctx context.Context, l *launching, prompt string) error {
	if err := la.store.SetToken(ctx, l.run.ID, l.run.Attempt.Number, agency.TokenHash(l.token)); err != nil {
		return err
	}
	killpoint.At("resume.token")
	return la.takeSteps(ctx, l, "resume", []step{
		{name: stepArchive, do: func() error { return la.archiveStatusFile(l) }},
		{name: stepFiles, do: func() error { return la.makeAttemptFiles(l.run, prompt) }},
		{name: stepSetup, do: func() error { return la.doSetup(ctx, l) }},
		{name: stepSession, more: true, do: func() error {
			// The session of the previous attempt was kept for its last screen.
			if err := la.settler.sessions.kill(ctx, l.run); err != nil {
				return err
			}
			return la.startSession(ctx, l)
		}},
		{name: stepStarted, do: func() error { return la.awaitStart(ctx, l) }},
	})
}

// archiveStatusFile moves the status file of the previous attempt beside its logs, so that an old
// status never describes a new attempt. First it writes the number of the new attempt, by which
// agency report refuses processes of older attempts.
func (la *launcher) archiveStatusFile(l *launching) error {
	r := l.run
	number := fmt.Appendf(nil, "%d\n", r.Attempt.Number)
	if err := file.WriteBeneath(r.Worktree, agency.AttemptFile, number, 0o644); err != nil {
		return agency.Errorf(agency.CodeInvalidPath, "agency cannot keep its files in the worktree of %s: %w", r.Ref(), err).
			WithHint("what is there belongs to no run; move it away and try again")
	}
	if l.keeps {
		return nil
	}
	// An attempt that was cut off at its start has no folder.
	dir := observe.AttemptDir(r.Dir, r.Attempt.Number-1)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return asFileError(err)
	}
	for rel, limit := range map[string]int64{agency.ContractFile: agency.ContractLimit, agency.ReportsFile: agency.ReportsLimit} {
		if data, err := file.ReadBeneath(r.Worktree, rel, limit); err == nil {
			if err := file.WriteAtomic(filepath.Join(dir, filepath.Base(rel)), data); err != nil {
				return asFileError(err)
			}
		}
		// The file is moved whatever its type, even a pipe or a folder; an agent may need it later.
		old := fmt.Sprintf("%s.attempt-%d", filepath.Base(rel), r.Attempt.Number-1)
		if err := file.RenameBeneath(r.Worktree, rel, old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return asFileError(err)
		}
	}
	return la.contract(r.Worktree, r.Attempt.CreatedAt)
}

// makeAttemptFiles creates the attempt's folder, points the run's links to it, and replaces the old
// task with the new one.
func (la *launcher) makeAttemptFiles(r *agency.Run, prompt string) error {
	dir := observe.AttemptDir(r.Dir, r.Attempt.Number)
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return asFileError(err)
	}
	if prompt != "" {
		if err := file.WriteDurable(filepath.Join(dir, agency.TaskFile), []byte(prompt)); err != nil {
			return asFileError(err)
		}
		if err := file.WriteBeneath(r.Worktree, agency.PromptFile, []byte(prompt), 0o644); err != nil {
			return asFileError(err)
		}
	}
	return linkAttempt(r)
}

// linkAttempt points the run directory's logs and records to the newest attempt.
func linkAttempt(r *agency.Run) error {
	for _, name := range []string{"logs", "exit_code.txt", "runner_done.json"} {
		target := filepath.Join("attempts", fmt.Sprint(r.Attempt.Number), name)
		link := filepath.Join(r.Dir, name)
		temp := link + ".new"
		if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
			return asFileError(err)
		}
		if err := os.Symlink(target, temp); err != nil {
			return asFileError(err)
		}
		if err := os.Rename(temp, link); err != nil {
			return asFileError(err)
		}
	}
	return nil
}
