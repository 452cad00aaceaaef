package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// ResumeRequest asks for another attempt of a run in the same worktree.
type ResumeRequest struct {
	Ref      string
	Prompt   string // a new task for this attempt; empty keeps the old one
	Fresh    bool   // a new conversation; what is in the worktree is saved first
	Restart  bool   // stop an attempt that lives
	Force    bool   // although the configuration of the runner changed
	NoSetup  bool   // although the repository's setup never succeeded
	Env      []string
	Set      []string                                      // NAME=value, over Env; the record keeps no values that an attempt before was given
	Settings func(*agency.Run) (agency.RunSettings, error) // the caller's configuration for the run
	Warn     func(text string)                             // takes what the caller should know although nothing failed
}

// Resumption says what a resume did.
type Resumption struct {
	Run *agency.Run
	// Continued is true when the agent goes on with the conversation of the attempt before; Note says why not.
	Continued bool
	Note      string
	Snapshot  *agency.Saved // of the worktree before a fresh start; nil when nothing had to be saved
}

// stepArchive is the first step of a later attempt; the others are those of a creation.
const stepArchive = "archive"

// ResumeRun starts attempt n+1 of a run in its worktree. It is refused with E_INVALID_STATE while an attempt lives (unless
// Restart stops it first), when the run or its worktree is gone, and when the runner's configuration is not the one that
// the run was made with (unless Force). A failure after that leaves the attempt failed, and the worktree as it was.
func (s *Supervisor) ResumeRun(ctx context.Context, req ResumeRequest) (*Resumption, error) {
	r, release, err := s.Records.hold(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	defer release()
	repo, err := s.checkResumable(ctx, r, req.Restart)
	if err != nil {
		return nil, err
	}
	if req.Prompt != "" {
		if err := agency.CheckPrompt(req.Prompt); err != nil {
			return nil, err
		}
	}
	if err := agency.CheckEnv(req.Set); err != nil {
		return nil, err
	}
	l, resumption, err := s.planAttempt(ctx, r, &req)
	if err != nil {
		return nil, err
	}
	unlock, giveUp, err := s.planLaterSetup(ctx, repo, l, &req)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !r.Attempt.State.Final() {
		// An agent that ended by itself meanwhile has done what was wanted.
		if _, err := s.stopRun(ctx, r.ID, r.Attempt.Number, forRestart); err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience())
	defer cancel()
	if err := s.awaitRelease(ctx, r, releaseTimeout); err != nil {
		return nil, err
	}
	if req.Fresh {
		if resumption.Snapshot, err = s.Work.saveDirty(ctx, r, repo, "before a fresh start"); err != nil {
			return nil, err
		}
	}
	killpoint.At("resume.saved")
	if err := s.beginAttempt(ctx, l); err != nil {
		return nil, err
	}
	if r.Flag != nil {
		req.Warn("it is no longer flagged: " + r.Flag.Reason)
	}
	unlock() // the record has it as live
	if giveUp {
		if err := s.Records.FinishStep(ctx, r.ID, l.run.Attempt.Number, stepSetup); err != nil {
			return nil, s.abortAttempt(ctx, l.run, err)
		}
	}
	if err := s.buildAttempt(ctx, l, req.Prompt); err != nil {
		return nil, s.abortAttempt(ctx, l.run, err)
	}
	resumption.Run, err = s.Records.Run(ctx, r.ID)
	return resumption, err
}

// checkResumable refuses what cannot have another attempt.
func (s *Supervisor) checkResumable(ctx context.Context, r *agency.Run, restart bool) (agency.Repo, error) {
	refuse := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodeInvalidState, format, args...)
	}
	switch {
	case r.RemovedAt != nil:
		return agency.Repo{}, refuse("%s is removed", r.Ref()).WithHint("start a new run: agency run --prompt ...")
	case r.Removing != nil:
		return agency.Repo{}, refuse("%s is being removed", r.Ref()).WithHint("start a new run: agency run --prompt ...")
	case r.MergedAt != nil:
		return agency.Repo{}, refuse("%s is merged", r.Ref()).WithHint("start a new run: agency run --prompt ...")
	case r.Attempt.State == agency.Queued:
		return agency.Repo{}, refuse("%s is still being started", r.Ref()).WithHint("agency wait %s", r.Ref())
	case !r.Attempt.State.Final() && !restart:
		return agency.Repo{}, refuse("%s is running", r.Ref()).
			WithHint("talk to it: agency send %s TEXT; or stop and start it again: agency resume --restart %s", r.Ref(), r.Ref())
	}
	repo, err := s.Repos.of(ctx, r)
	if err != nil {
		return repo, err
	}
	return repo, s.Repos.checkWorktree(ctx, r, repo)
}

// planAttempt makes the command line of the next attempt without changing anything.
func (s *Supervisor) planAttempt(ctx context.Context, r *agency.Run, req *ResumeRequest) (*launching, *Resumption, error) {
	settings, err := req.Settings(r)
	if err != nil {
		return nil, nil, err
	}
	spec, err := s.Records.spec(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkTmux(ctx); err != nil {
		return nil, nil, err
	}
	resumption := &Resumption{}
	conversation := r.Attempt.ConversationID
	switch {
	case req.Fresh:
		resumption.Note = "a fresh start was asked for"
	case conversation == "":
		resumption.Note = fmt.Sprintf("%s told no conversation that could go on, so it begins a new one in the same worktree", r.Runner.Name)
	default:
		resumption.Continued = true
	}
	next := *r
	next.Attempt = agency.Attempt{Number: r.Attempt.Number + 1, State: agency.Queued, Headless: r.Attempt.Headless, CreatedAt: s.Now()}
	first := agency.NewContract(next.Attempt.CreatedAt)
	next.Attempt.Word = agency.Observed{Contract: &first, At: next.Attempt.CreatedAt}
	env := append(runnerEnv(req.Env, settings.Env, settings.EnvDeny), req.Set...)
	if missing := missingNames(spec.Env, env); len(missing) > 0 {
		req.Warn(fmt.Sprintf("the first start was given %s; the values are not kept: agency resume %s --env NAME=VALUE", strings.Join(missing, ", "), r.Ref()))
	}
	if !resumption.Continued {
		conversation = s.Random.uuid()
	}
	l := &launching{run: &next, token: s.Random.token(), env: env, settings: &settings}
	if err := s.planCommand(l, spec, conversation, resumption.Continued); err != nil {
		return nil, nil, err
	}
	if next.ConfigHash != r.ConfigHash && !req.Force {
		now := strings.Join(append([]string{l.command.Argv[0]}, settings.DefaultArgs...), " ")
		return nil, nil, agency.Errorf(agency.CodeInvalidState, "the runner of %s is not the one that it was made with: %s now", r.Ref(), now).
			WithHint("if that is what you want: agency resume --force %s", r.Ref())
	}
	return l, resumption, nil
}

// missingNames are those that an environment does not set.
func missingNames(wanted, env []string) []string {
	var missing []string
	set := names(env)
	for _, name := range wanted {
		if !slices.Contains(set, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// beginAttempt writes the intent: the queued attempt with its token and steps.
func (s *Supervisor) beginAttempt(ctx context.Context, l *launching) error {
	next := l.run.Attempt
	number, hash := next.Number, l.run.ConfigHash
	unlock, err := s.locks.lock(ctx, "session "+string(l.run.ID))
	if err != nil {
		return err
	}
	defer unlock()
	begun, err := s.Records.ChangeRun(ctx, l.run.ID, func(r *agency.Run) ([]agency.News, error) {
		if r.Attempt.Number != number-1 || !r.Attempt.State.Final() || r.RemovedAt != nil {
			return nil, agency.Errorf(agency.CodeInvalidState, "%s changed meanwhile", r.Ref()).WithHint("agency show %s", r.Ref())
		}
		r.Attempt, r.ConfigHash = next, hash
		return append(takeFlag(r, agency.Daemon), agency.News{Type: agency.AttemptCreated, Data: map[string]any{"conversation_id": next.ConversationID}}), nil
	})
	if err != nil {
		return err
	}
	killpoint.At("resume.begun")
	l.run = begun
	s.track(begun)
	s.writeViews(ctx, begun) // a record that is lost from here on comes back with this attempt
	return nil
}

// buildAttempt prepares the worktree and starts the agent.
func (s *Supervisor) buildAttempt(ctx context.Context, l *launching, prompt string) error {
	if err := s.Records.SetToken(ctx, l.run.ID, l.run.Attempt.Number, agency.TokenHash(l.token)); err != nil {
		return err
	}
	killpoint.At("resume.token")
	return s.takeSteps(ctx, l, "resume", []step{
		{stepArchive, func() error { return s.archiveWord(l.run) }},
		{stepFiles, func() error { return s.makeAttemptFiles(l.run, prompt) }},
		{stepSetup, func() error { return s.doSetup(ctx, l) }},
		{stepSession, func() error {
			// The session of the attempt before was kept for its last screen.
			if err := s.killSession(ctx, l.run); err != nil {
				return err
			}
			return s.startSession(ctx, l)
		}},
		{stepStarted, func() error { return s.awaitStart(ctx, l) }},
	})
}

// archiveWord keeps what the attempt before said beside its logs, so that an old word never describes a new attempt. First
// of all it writes the number of the new attempt, by which agency report refuses whoever is left of an older one.
func (s *Supervisor) archiveWord(r *agency.Run) error {
	number := fmt.Appendf(nil, "%d\n", r.Attempt.Number)
	if err := file.WriteBeneath(r.Worktree, agency.AttemptFile, number, 0o644); err != nil {
		return agency.Errorf(agency.CodeInvalidPath, "agency cannot keep its files in the worktree of %s: %w", r.Ref(), err).
			WithHint("what stands there belongs to no run; take it away, and try again")
	}
	// An attempt that was cut off at its beginning has no folder.
	dir := attemptDir(r.Dir, r.Attempt.Number-1)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return asFileError(err)
	}
	for rel, limit := range map[string]int64{agency.ContractFile: agency.ContractLimit, agency.ReportsFile: agency.ReportsLimit} {
		if data, err := file.ReadBeneath(r.Worktree, rel, limit); err == nil {
			if err := file.WriteAtomic(filepath.Join(dir, filepath.Base(rel)), data); err != nil {
				return asFileError(err)
			}
		}
		// Whatever it is, a pipe or a folder, it leaves the place; an agent may have reason to look at it again.
		old := fmt.Sprintf("%s.attempt-%d", filepath.Base(rel), r.Attempt.Number-1)
		if err := file.RenameBeneath(r.Worktree, rel, old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return asFileError(err)
		}
	}
	return s.Contract(r.Worktree, r.Attempt.CreatedAt)
}

// makeAttemptFiles makes the attempt's folder, points the run's links to it, and lays a new task over the old one.
func (s *Supervisor) makeAttemptFiles(r *agency.Run, prompt string) error {
	dir := attemptDir(r.Dir, r.Attempt.Number)
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return asFileError(err)
	}
	if prompt != "" {
		if err := file.WriteDurable(filepath.Join(dir, "prompt.md"), []byte(prompt)); err != nil {
			return asFileError(err)
		}
		if err := file.WriteBeneath(r.Worktree, agency.PromptFile, []byte(prompt), 0o644); err != nil {
			return asFileError(err)
		}
	}
	return s.linkAttempt(r)
}

// abortAttempt fails an attempt, and returns why. What the record cannot take now, because the disk is full or the like, is tried again
// until it can.
func (s *Supervisor) abortAttempt(ctx context.Context, r *agency.Run, why error) error {
	err := s.failAttempt(ctx, r, why)
	if err != nil {
		s.work.Go(func() { s.settleWhenDead(r.ID) })
	}
	return errors.Join(why, err)
}

// failAttempt settles an attempt that did not get as far as a runner, a later one or one whose setup failed. The worktree and
// the branch stay.
func (s *Supervisor) failAttempt(ctx context.Context, r *agency.Run, why error) error {
	s.intendEnd(ctx, r, why)
	if err := s.endStart(ctx, r); err != nil {
		return err
	}
	killpoint.At("fail.ended")
	number, reason, changed := r.Attempt.Number, agency.AsError(why), false
	failed, err := s.Records.fact(ctx, r.ID, func(r *agency.Run) ([]agency.News, error) {
		a := &r.Attempt
		changed = false
		if a.Number != number || a.State.Final() {
			return nil, nil
		}
		state, err := agency.Next(a.State, agency.Fact{Kind: agency.FactLost, StopRequested: a.StopRequestedAt != nil})
		if err != nil {
			return nil, err
		}
		now := s.Now()
		a.State, a.EndedAt, a.EndedBy, a.ErrorCode, a.Error = state, &now, agency.EndedByStartFailed, reason.Code, reason.Message
		if reason.Code == agency.CodeSetupFailed {
			a.EndedBy, a.ConversationID = agency.EndedBySetupFailed, "" // a conversation that was never begun
		}
		changed = true
		return []agency.News{endNews(a)}, nil
	})
	if err != nil {
		return fmt.Errorf("record the failed start of %s: %w", r.Ref(), err)
	}
	killpoint.At("fail.recorded")
	if changed {
		s.writeViews(ctx, failed)
	}
	s.forget(failed, number)
	return nil
}
