package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// ResumeRequest asks for another attempt of a run in the same worktree.
type ResumeRequest struct {
	Ref         string
	Prompt      string      // a new task for this attempt; empty keeps the old one
	Mode        agency.Mode // the conversation continues in it; without a prompt, the agent waits for a message
	Idle        bool        // with Mode: only while the agent is at rest
	Attempt     int         // whose conversation continues; 0 is the newest
	Fresh       bool        // a new conversation; the worktree is saved first
	Restart     bool        // stop a live attempt
	Force       bool        // even when the configuration of the runner changed
	NoSetup     bool        // even when the repository's setup never succeeded
	FromSandbox bool        // the client is an agent in a sandbox
	Env         []string
	Set         []string           // NAME=value, over Env; the values that an earlier attempt was given are not recorded
	Settings    agency.RunSettings // the caller's configuration for the run
}

// Resumption is the result of a resume.
type Resumption struct {
	Run *agency.Run
	// Continued is true when the agent continues the conversation of the previous attempt;
	// otherwise Note is the reason.
	Continued bool
	Note      string
	Snapshot  *agency.Saved // of the worktree before a fresh start; nil when there was nothing to save
	Warnings  []string      // problems that did not fail the resume
}

// stepArchive is the first step of a later attempt; the others are those of a creation.
const stepArchive = "archive"

// ResumeRun starts attempt n+1 of a run in its worktree. The error is E_INVALID_STATE while an
// attempt lives (unless Restart stops it first), when the run or its worktree is gone, and when the
// runner's configuration differs from the one that the run was made with (unless Force). A later
// failure leaves the attempt failed and the worktree as it was; the result then has the warnings
// alone.
func (s *Supervisor) ResumeRun(ctx context.Context, req ResumeRequest) (*Resumption, error) {
	r, repo, release, err := s.holdToResume(ctx, &req)
	if err != nil {
		return nil, err
	}
	defer release()
	l, resumption, err := s.planner.planAttempt(ctx, r, &req)
	if err == nil {
		err = checkIdle(r, &req) // last: a client waits for an agent at work, and then every other error would come too late
	}
	if err != nil {
		return nil, err
	}
	defer func() { resumption.Warnings = orEmpty(l.warnings) }()
	unlock, giveUp, err := s.planner.planLaterSetup(ctx, repo, l, &req)
	if err != nil {
		return resumption, err
	}
	defer unlock()
	if !r.Attempt.State.Final() {
		if err := s.endAgent(ctx, r, &req); err != nil {
			return resumption, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout())
	defer cancel()
	if err := s.settler.awaitRelease(ctx, r, releaseTimeout); err != nil {
		return resumption, err
	}
	if req.Fresh {
		if resumption.Snapshot, err = s.Work.saveDirty(ctx, r, repo, "before a fresh start"); err != nil {
			return resumption, err
		}
	}
	killpoint.At("resume.saved")
	if err := s.beginAttempt(ctx, l); err != nil {
		return resumption, err
	}
	if r.Flag != nil {
		l.warn("it is no longer flagged: " + r.Flag.Reason)
	}
	unlock() // the attempt is recorded as live
	if giveUp {
		if err := s.Records.FinishSteps(ctx, r.ID, l.run.Attempt.Number, stepSetup); err != nil {
			return resumption, s.settler.abort(ctx, l.run, err)
		}
	}
	move := move{wanted: l.run.Attempt.ConversationID, of: cmp.Or(req.Attempt, r.Attempt.Number), from: cmp.Or(r.Attempt.Mode, agency.ModeTerminal), silent: l.silent}
	if err := s.launcher.buildAttempt(ctx, l, req.Prompt); err != nil {
		return resumption, s.settler.abort(ctx, l.run, err)
	}
	if resumption.Run, err = s.Records.Run(ctx, r.ID); err == nil && req.Mode != "" {
		resumption.Run, err = s.awaitConversation(ctx, resumption.Run, &move)
	}
	return resumption, err
}

// holdToResume locks a run for another attempt until release is called. It refuses a run that
// cannot have one, and a request that is not valid.
func (s *Supervisor) holdToResume(ctx context.Context, req *ResumeRequest) (r *agency.Run, repo agency.Repo, release func(), err error) {
	// A removal holds the run until nothing is left to resume.
	r, err = s.Records.Resolve(ctx, req.Ref)
	if err == nil && r.Removing != nil {
		err = beingRemoved(r)
	}
	if err != nil {
		return nil, repo, nil, err
	}
	if r, release, err = s.Records.Hold(ctx, string(r.ID)); err != nil {
		return nil, repo, nil, err
	}
	if err = checkMode(r, req); err == nil {
		repo, err = s.checkResumable(ctx, r, req.Restart || req.Mode != "")
	}
	if err == nil && req.Prompt != "" {
		err = agency.CheckPrompt(req.Prompt)
	}
	if err == nil {
		err = agency.CheckEnv(req.Set)
	}
	if err != nil {
		release()
	}
	return r, repo, release, err
}

// beingRemoved returns the error of a resume that comes too late.
func beingRemoved(r *agency.Run) error {
	return agency.Errorf(agency.CodeInvalidState, "%s is being removed", r.Ref()).WithHint("start a new run: agency run --prompt ...")
}

// checkResumable refuses a run that cannot have another attempt.
func (s *Supervisor) checkResumable(ctx context.Context, r *agency.Run, restart bool) (agency.Repo, error) {
	refuse := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodeInvalidState, format, args...)
	}
	switch {
	case r.RemovedAt != nil:
		return agency.Repo{}, refuse("%s is removed", r.Ref()).WithHint("start a new run: agency run --prompt ...")
	case r.Removing != nil:
		return agency.Repo{}, beingRemoved(r)
	case r.MergedAt != nil:
		return agency.Repo{}, refuse("%s is merged", r.Ref()).WithHint("start a new run: agency run --prompt ...")
	case r.Attempt.State == agency.Queued:
		return agency.Repo{}, refuse("%s is still being started", r.Ref()).WithHint("agency wait %s", r.Ref())
	case !r.Attempt.State.Final() && !restart:
		return agency.Repo{}, refuse("%s is running", r.Ref()).
			WithHint("talk to it: agency send %s TEXT; or stop and start it again: agency resume --restart %s", r.Ref(), r.Ref())
	}
	repo, err := s.Repos.Of(ctx, r)
	if err != nil {
		return repo, err
	}
	return repo, s.Repos.checkWorktree(ctx, r, repo)
}

// planAttempt builds the command line of the next attempt without changing anything.
func (pl *planner) planAttempt(ctx context.Context, r *agency.Run, req *ResumeRequest) (*launching, *Resumption, error) {
	spec, err := pl.store.spec(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if err := pl.launcher.checkTmux(ctx); err != nil {
		return nil, nil, err
	}
	resumption := &Resumption{}
	conversation, err := pl.conversationOf(ctx, r, req)
	switch {
	case err != nil:
		return nil, nil, err
	case req.Fresh:
		resumption.Note = "a fresh start was asked for"
	case conversation == "":
		resumption.Note = fmt.Sprintf("%s has no conversation to continue, so it begins a new one in the same worktree", r.Runner.Name)
	default:
		resumption.Continued = true
	}
	next := *r
	next.Attempt = nextAttempt(&r.Attempt, pl.now())
	settings := &req.Settings
	env := append(runnerEnv(req.Env, settings.Env, settings.EnvDeny), req.Set...)
	if !resumption.Continued {
		conversation = pl.random.uuid()
	}
	if req.Mode != "" {
		next.Attempt.SetMode(req.Mode)
	}
	if next.Attempt.Image, err = pl.checkSandbox(ctx, r.Sandbox.Level, req.Env, spec.Image); err != nil {
		return nil, nil, err
	}
	if next.Attempt.Image != nil && r.Attempt.Image != nil {
		next.Attempt.Image.From = r.Attempt.Image.From
	}
	l := &launching{run: &next, token: pl.random.token(), env: env, settings: settings, silent: req.Mode != "" && req.Prompt == "", set: append(names(settings.Env), names(req.Set)...)}
	if missing := missingNames(spec.Env, env); len(missing) > 0 {
		l.warn(fmt.Sprintf("the first start was given %s; the values are not kept: agency resume --restart %s --env NAME=VALUE", strings.Join(missing, ", "), r.Ref()))
	}
	if err := pl.planCommand(l, spec, conversation, resumption.Continued); err != nil {
		return nil, nil, staysInMode(err, r, req)
	}
	if l.silent && next.Attempt.HasTerminal() { // in its protocol, the agent shows by its first reply that it is there
		next.Attempt.AgentState.Turn, next.Attempt.AgentState.TurnAt = agency.TurnEnded, next.Attempt.CreatedAt
	}
	l.keeps = l.silent && r.Attempt.OwnReport() != nil
	if req.Mode != "" && (!resumption.Continued || next.Attempt.ConversationID != conversation) {
		return nil, nil, agency.Errorf(agency.CodeConversationLost, "%s has no conversation that it could continue in the mode %s", r.Ref(), req.Mode).
			WithHint("begin a new one: agency run --mode %s", req.Mode)
	}
	if next.ConfigHash != r.ConfigHash && !req.Force {
		now := strings.Join(append([]string{l.command.Argv[0]}, settings.DefaultArgs...), " ")
		return nil, nil, agency.Errorf(agency.CodeInvalidState, "the runner of %s is not the one that it was made with: %s now", r.Ref(), now).
			WithHint("if that is what you want: %s", req.forced(r))
	}
	return l, resumption, nil
}

// nextAttempt returns the attempt that follows the newest one of a run, as it is when it is queued.
func nextAttempt(before *agency.Attempt, now time.Time) agency.Attempt {
	first := agency.NewContract(now)
	next := agency.Attempt{
		Number: before.Number + 1, State: agency.Queued, Headless: before.Headless, Mode: before.Mode, CreatedAt: now,
		Ports: agency.NewPorts(before.Ports.Numbers()), Reported: agency.Observed{Contract: &first, At: now},
	}
	if granted := before.Network.Grants(true); len(granted) > 0 {
		next.Network = &agency.NetworkUse{Hosts: []string{}, Granted: granted, Refused: []agency.Refusal{}}
	}
	return next
}

// conversationOf returns the conversation that a run would continue; empty when it has none.
func (pl *planner) conversationOf(ctx context.Context, r *agency.Run, req *ResumeRequest) (string, error) {
	switch {
	case req.Attempt == 0:
		return r.Attempt.ConversationID, nil
	case req.Fresh:
		return "", agency.Errorf(agency.CodeUsage, "a fresh start begins a new conversation, and continues that of no attempt").WithHint("drop one of the two")
	}
	attempts, err := pl.store.Attempts(ctx, r.ID)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(attempts, func(a agency.Attempt) bool { return a.Number == req.Attempt })
	switch {
	case i < 0:
		return "", agency.Errorf(agency.CodeRunNotFound, "%s has no attempt %d; it has %d", r.Ref(), req.Attempt, r.Attempt.Number).WithHint("agency show %s", r.Ref())
	case attempts[i].ConversationID == "":
		return "", agency.Errorf(agency.CodeConversationLost, "attempt %d of %s had no conversation", req.Attempt, r.Ref()).WithHint("agency show %s", r.Ref())
	default:
		return attempts[i].ConversationID, nil
	}
}

// forced returns the command that asks for the same although the configuration changed.
func (req *ResumeRequest) forced(r *agency.Run) string {
	switch {
	case req.Mode == agency.ModeHeadless:
		return fmt.Sprintf("agency mode --force %s headless --prompt TEXT", r.Ref())
	case req.Mode != "":
		return fmt.Sprintf("agency mode --force %s %s", r.Ref(), req.Mode)
	case req.Restart:
		return "agency resume --restart --force " + r.Ref()
	default:
		return "agency resume --force " + r.Ref()
	}
}

// missingNames returns the names that an environment does not set.
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

// beginAttempt records the intent: the queued attempt with its token and steps.
func (s *Supervisor) beginAttempt(ctx context.Context, l *launching) error {
	next := l.run.Attempt
	number, hash := next.Number, l.run.ConfigHash
	unlock, err := s.settler.locks.Lock(ctx, "session "+string(l.run.ID))
	if err != nil {
		return err
	}
	defer unlock()
	begun, err := s.Records.ChangeRun(ctx, l.run.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Attempt.Number != number-1 || !r.Attempt.State.Final() || r.RemovedAt != nil {
			return nil, agency.Errorf(agency.CodeInvalidState, "%s changed meanwhile", r.Ref()).WithHint("agency show %s", r.Ref())
		}
		l.carry(&next, &r.Attempt)
		r.Attempt, r.ConfigHash = next, hash
		return append(beginAgain(r), agency.EventDraft{Type: agency.AttemptCreated, Data: map[string]any{"conversation_id": next.ConversationID}}), nil
	})
	if err != nil {
		return err
	}
	killpoint.At("resume.begun")
	l.run = begun
	s.settler.track(begun)
	s.views.write(ctx, begun) // if the record is lost from here on, it is rebuilt with this attempt
	return nil
}

// carry copies into the next attempt what still holds of the one before: the agent's list of tasks in
// the same conversation, and with keeps what the agent reported and when it was answered.
func (l *launching) carry(next, before *agency.Attempt) {
	state := &before.AgentState
	if next.ConversationID != "" && next.ConversationID == before.ConversationID {
		next.AgentState.Todos = state.Todos
	}
	if l.keeps {
		next.Reported, next.InputAt = before.Reported, before.InputAt
		next.AgentState.Reported, next.AgentState.ReportsOffset, next.AgentState.PromptAt = state.Reported, state.ReportsOffset, state.PromptAt
	}
}
