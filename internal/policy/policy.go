// Package policy decides which callers may do what. The user may do everything. A table lists what
// a run may do; only the user may call an operation without an entry.
package policy

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/runner"
	"agency/internal/supervisor"
)

// Store is the record that the policy reads.
type Store interface {
	Run(ctx context.Context, id agency.RunID) (*agency.Run, error)
	Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error)
	Spec(ctx context.Context, id agency.RunID) ([]byte, error)
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error)
	SessionRuns(ctx context.Context, id agency.SessionID, live bool) (map[agency.RunID]*agency.Run, error)
	Alerts(ctx context.Context, f agency.AlertFilter) ([]agency.Alert, error)
}

// Records finds runs.
type Records interface {
	Resolve(ctx context.Context, ref string) (*agency.Run, error)
}

// Callers knows the identity and the owners of runs.
type Callers interface {
	// Identify returns the id of the run whose token a caller has, or agency.User.
	Identify(ctx context.Context, c supervisor.Caller) (string, error)
	// Owners returns the owners above something that startedBy started, the nearest first.
	Owners(ctx context.Context, startedBy string) ([]agency.RunID, error)
}

// Runs are the live runs.
type Runs interface {
	Attempts() []supervisor.LiveAttempt
	// Environ returns the environment that a run was started with.
	Environ(ctx context.Context, r *agency.Run) ([]string, error)
}

// Deps are the parts that a policy needs.
type Deps struct {
	Store   Store
	Records Records
	Callers Callers
	Runs    Runs
	// Discover returns the repository of a folder.
	Discover func(ctx context.Context, dir string) (agency.Repo, error)
	// LookUp returns the session that a reference means to a client whose directory is dir.
	LookUp  func(ctx context.Context, ref, dir string) (*agency.Session, error)
	Config  func() *config.Config // that the daemon uses now
	Serving runner.Serving        // the processes that belong to no run
	Now     func() time.Time
}

// Policy decides what callers may do. All methods may be called from several goroutines.
type Policy struct {
	Deps
	children children
}

// New returns a policy.
func New(deps Deps) *Policy { return &Policy{Deps: deps} }

// relations is the set of relations between a run and the subject of a request.
type relations uint8

const (
	itself    relations = 1 << iota // the run is the subject
	owner                           // the run, or a run that it started, directly or not, started the subject
	leader                          // the run has the orchestrator's tag, and the subject is in its repository
	neighbour                       // the subject is the repository that the run works in
	anyRun                          // every run has this relation to everything
)

// rule names the runs that may do an operation.
type rule struct {
	runs relations
	// about returns the relations of a run to the subject of a request. It replaces the reference
	// to the subject by one whose meaning cannot change. It is nil when a request has no subject.
	about func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error)
	// limit refuses what an agent may not request; nil refuses nothing. by is nil for tools that do
	// not belong to a run.
	limit func(p *Policy, by *agency.Run, req any) error
}

// everyRun is for operations that reveal no more than the user's files do, or whose handler limits
// them by the caller.
var everyRun = rule{runs: anyRun}

// theirs are the runs that a run may act on.
const theirs = owner | leader

var table = map[string]rule{
	api.ListRuns.Name: everyRun, api.ShowRun.Name: everyRun, api.ExplainRun.Name: everyRun, api.ShowOutput.Name: everyRun, api.ShowScreen.Name: everyRun, api.DiffRun.Name: everyRun,
	api.WaitRuns.Name: everyRun, api.ListQueue.Name: everyRun, api.ShowCheck.Name: everyRun, api.ReviewRun.Name: everyRun, api.ReviewSession.Name: everyRun, api.ListSnapshots.Name: everyRun, api.ShowSnapshot.Name: everyRun, api.ShowTrust.Name: everyRun, api.ListRefs.Name: everyRun,
	api.ListAlerts.Name: everyRun, api.ExplainWatchdog.Name: everyRun, api.ListTimers.Name: everyRun, api.ListStandbys.Name: everyRun, api.ListEvents.Name: everyRun,
	api.DaemonStatus.Name: everyRun, api.ListSessions.Name: everyRun, api.ShowSession.Name: everyRun, api.WaitSession.Name: everyRun,
	api.EventsPath: everyRun, api.LogsPath: everyRun,
	// A run reads its own inbox and ends its own timers, and a message names its sender.
	api.SendMessage.Name: everyRun, api.PollMessages.Name: everyRun, api.AckMessages.Name: everyRun, api.ListMessages.Name: everyRun, api.StopTimers.Name: everyRun,

	api.CreateRun.Name:     inRepo(func(r *api.CreateRunRequest) string { return from(r.Dir, r.Spec.Repo) }),
	api.PlanSession.Name:   inRepo(func(r *api.PlanSessionRequest) string { return r.Dir }),
	api.StartSession.Name:  inRepo(func(r *api.StartSessionRequest) string { return r.Dir }),
	api.CreateSession.Name: inRepo(func(r *api.CreateSessionRequest) string { return r.Dir }),

	api.AnswerRun.Name:       onRun(theirs, func(r *api.AnswerRunRequest) *string { return &r.Run }),
	api.SendInput.Name:       limited(onRun(theirs, func(r *api.SendInputRequest) *string { return &r.Run }), limitInput),
	api.StartTimer.Name:      limited(onRun(itself|theirs, func(r *api.StartTimerRequest) *string { return &r.Run }), limitTimer),
	api.InterruptRun.Name:    onRun(theirs, runRequest),
	api.StopRun.Name:         onRun(itself|theirs, runRequest),
	api.ResumeRun.Name:       onRun(theirs, func(r *api.ResumeRunRequest) *string { return &r.Run }),
	api.RemoveRun.Name:       limited(onRun(theirs, func(r *api.RemoveRunRequest) *string { return &r.Run }), limitRemoval),
	api.ChangeTags.Name:      limited(onRun(theirs, func(r *api.ChangeTagsRequest) *string { return &r.Run }), limitTags),
	api.FlagRun.Name:         onRun(itself|theirs, func(r *api.FlagRunRequest) *string { return &r.Run }),
	api.AbandonRun.Name:      onRun(theirs, func(r *api.AbandonRunRequest) *string { return &r.Run }),
	api.UnflagRun.Name:       onRun(theirs, runRequest),
	api.VerifyRun.Name:       limited(onRun(itself|theirs, func(r *api.VerifyRunRequest) *string { return &r.Run }), limitVerify),
	api.AddToQueue.Name:      limited(onQueue, limitQueue),
	api.TakeSnapshot.Name:    onRun(itself|theirs, runRequest),
	api.RestoreSnapshot.Name: onRun(itself|theirs, func(r *api.RestoreSnapshotRequest) *string { return &r.Run }),
	api.AckAlerts.Name:       onAlerts(func(r *api.AckAlertRequest) []string { return r.Alerts }),
	api.SnoozeAlerts.Name:    onAlerts(func(r *api.SnoozeAlertRequest) []string { return r.Alerts }),

	api.PauseSession.Name:   onSession(sessionRequest),
	api.ResumeSession.Name:  onSession(func(r *api.ResumeSessionRequest) (*string, string) { return &r.Session, r.Dir }),
	api.CancelSession.Name:  onSession(sessionRequest),
	api.RetrySession.Name:   onSession(func(r *api.RetrySessionRequest) (*string, string) { return &r.Session, r.Dir }),
	api.UpdateSession.Name:  limited(onSession(func(r *api.UpdateSessionRequest) (*string, string) { return &r.Session, r.Dir }), limitUpdate),
	api.RemoveSessions.Name: onSession(func(r *api.RemoveSessionsRequest) (*string, string) { return &r.Session, r.Dir }),
	api.SessionUpdatesPath:  onSession(sessionRequest),

	// Only the user may do these.
	api.AttachRun.Name: {}, api.JoinRun.Name: {}, api.PressKeys.Name: {}, api.AllowHost.Name: {}, api.SetRun.Name: {}, api.Unsend.Name: {}, api.AddComments.Name: {}, api.DiscardComments.Name: {}, api.SendComments.Name: {}, api.MarkReviewed.Name: {}, api.MergeRun.Name: {}, api.ChangeQueue.Name: {}, api.PauseQueue.Name: {}, api.MergeSession.Name: {}, api.CollectRuns.Name: {}, api.CheckDatabase.Name: {}, api.BackupDatabase.Name: {}, api.InitRepo.Name: {}, api.LeaveRepos.Name: {},
	api.PlanPush.Name: {}, api.RecordPush.Name: {}, api.PlanPR.Name: {}, api.RecordPR.Name: {},
	api.GrantTrust.Name: {}, api.RevokeTrust.Name: {}, api.TestNotify.Name: {}, api.ListChannels.Name: {}, api.Doctor.Name: {}, api.StopDaemon.Name: {},
}

func runRequest(r *api.RunRequest) *string { return &r.Run }

func sessionRequest(r *api.SessionRequest) (ref *string, dir string) { return &r.Session, r.Dir }

// from returns a path as an absolute one or relative to a folder.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func onRun[Req any](runs relations, ref func(*Req) *string) rule {
	return rule{runs: runs, about: func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error) {
		at := ref(req.(*Req))
		r, err := p.Records.Resolve(ctx, *at)
		if err != nil {
			return 0, err
		}
		*at = string(r.ID)
		return p.standsToRun(ctx, by, r)
	}}
}

func onSession[Req any](ref func(*Req) (*string, string)) rule {
	return rule{runs: theirs, about: func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error) {
		at, dir := ref(req.(*Req))
		if *at == "" {
			return 0, nil // every session, or none
		}
		s, err := p.LookUp(ctx, *at, dir)
		if err != nil {
			return 0, err
		}
		*at = string(s.ID)
		return p.standsTo(ctx, by, s.Owner, s.Repo)
	}}
}

// onQueue is the rule for adding runs to a queue: a run may add what it may act on.
var onQueue = rule{runs: theirs, about: func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error) {
	add := req.(*api.AddToQueueRequest)
	stands := theirs
	if add.Session != "" {
		s, err := p.LookUp(ctx, add.Session, add.Dir)
		if err != nil {
			return 0, err
		}
		add.Session = string(s.ID)
		if stands, err = p.standsTo(ctx, by, s.Owner, s.Repo); err != nil {
			return 0, err
		}
	}
	for i, ref := range add.Runs {
		r, err := p.Records.Resolve(ctx, ref)
		if err != nil {
			return 0, err
		}
		add.Runs[i] = string(r.ID)
		to, err := p.standsToRun(ctx, by, r)
		if err != nil {
			return 0, err
		}
		if to&theirs == 0 {
			stands = 0
		}
	}
	return stands, nil
}}

// onAlerts is the rule for operations on alerts about other runs. An alert about the run itself is
// for another run or the user to handle.
func onAlerts[Req any](ids func(*Req) []string) rule {
	return rule{runs: theirs, about: func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error) {
		alerts, err := p.Store.Alerts(ctx, agency.AlertFilter{IDs: ids(req.(*Req)), Resolved: true})
		for i := range alerts {
			stands, err := p.standsToAlert(ctx, by, &alerts[i])
			if err != nil || stands&theirs == 0 {
				return 0, err
			}
		}
		return theirs, err
	}}
}

func inRepo[Req any](dir func(*Req) string) rule {
	return rule{runs: neighbour, about: func(ctx context.Context, p *Policy, by *agency.Run, req any) (relations, error) {
		repo, err := p.Discover(ctx, dir(req.(*Req)))
		if err != nil || repo.Fingerprint != by.Repo.Fingerprint {
			return 0, err
		}
		return neighbour, nil
	}}
}

func limited[Req any](r rule, limit func(p *Policy, by *agency.Run, req *Req) error) rule {
	r.limit = func(p *Policy, by *agency.Run, req any) error { return limit(p, by, req.(*Req)) }
	return r
}

// Allow refuses a request of an agent that the policy does not allow: E_PERMISSION_DENIED. It may
// replace a reference in the request by an id.
func (p *Policy) Allow(ctx context.Context, operation string, req any) error {
	r, fromSandbox := table[operation], isInside(ctx)
	if r.runs == anyRun && r.limit == nil && !fromSandbox {
		return nil
	}
	by, asks, err := p.Agent(ctx)
	if err != nil {
		return err
	}
	if fromSandbox || by != nil && by.Sandbox.Level.Confines() {
		if err := p.allowInside(ctx, by, operation, req); err != nil {
			return err
		}
	}
	if !asks {
		return nil
	}
	if by != nil {
		stands := anyRun
		if r.runs != 0 && r.about != nil {
			if stands, err = r.about(ctx, p, by, req); err != nil {
				return err
			}
		}
		if r.runs&stands == 0 {
			return notAllowed(operation, by, r.runs)
		}
	}
	if r.limit != nil {
		return r.limit(p, by, req)
	}
	return nil
}

// notAllowed returns the error for a run that may not do an operation. It names the callers that
// may.
func notAllowed(operation string, by *agency.Run, may relations) error {
	return agency.Errorf(agency.CodePermissionDenied, "%s may not do %s here: %s", by.Ref(), strings.TrimPrefix(operation, "/v1/"), may.words()).
		WithDetail("operation", operation).WithHint("docs/policy.md lists what a run may do; ask the user: agency report needs-input")
}

// words describes the callers that may do an operation, besides the user.
func (s relations) words() string {
	if s == 0 {
		return "only the user may"
	}
	if s&anyRun != 0 {
		return "every run may"
	}
	if s&neighbour != 0 {
		return "a run may in the repository that it works in"
	}
	whom := []string{}
	if s&itself != 0 {
		whom = append(whom, "itself")
	}
	return "a run may to " + strings.Join(append(whom, "what it started, and an orchestrator to what is in its repository"), ", ")
}

// standsToRun returns the relations of a run to another one, or to itself.
func (p *Policy) standsToRun(ctx context.Context, by, r *agency.Run) (relations, error) {
	if r.ID == by.ID {
		return itself, nil
	}
	return p.standsTo(ctx, by, r.Owner, r.Repo)
}

// standsTo returns the relations of a run to something that startedBy started in a repository.
func (p *Policy) standsTo(ctx context.Context, by *agency.Run, startedBy string, repo agency.Repo) (relations, error) {
	var stands relations
	owners, err := p.Callers.Owners(ctx, startedBy)
	if slices.Contains(owners, by.ID) {
		stands |= owner
	}
	if repo.Fingerprint == by.Repo.Fingerprint && by.HasTag(p.orchestratorTag()) {
		stands |= leader
	}
	return stands, err
}

func (p *Policy) standsToAlert(ctx context.Context, by *agency.Run, a *agency.Alert) (relations, error) {
	if a.Session != "" {
		s, err := p.Store.Session(ctx, a.Session)
		if err != nil {
			return 0, err
		}
		return p.standsTo(ctx, by, s.Owner, s.Repo)
	}
	if a.RunID == "" {
		return 0, nil // the machine is the user's
	}
	r, err := p.Store.Run(ctx, a.RunID)
	if err != nil {
		return 0, err
	}
	return p.standsToRun(ctx, by, r)
}

func (p *Policy) orchestratorTag() string { return p.Config().Watchdog.OrchestratorTag }

// limitInput keeps an agent from typing a command of the program that it types into: coding
// agents run a line that begins with ! in a shell, without asking.
func limitInput(_ *Policy, _ *agency.Run, r *api.SendInputRequest) error { return plainMessage(r.Text) }

func limitTimer(_ *Policy, _ *agency.Run, r *api.StartTimerRequest) error {
	return plainMessage(r.Message)
}

func plainMessage(text string) error {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "/") {
		return agency.Errorf(agency.CodePermissionDenied, "a message of an agent may not begin with %q: it would be a command of the program that it is typed into", text[:1]).
			WithHint("begin the message with a word")
	}
	return nil
}

// limitRemoval keeps an agent from removing work that cannot be saved.
func limitRemoval(_ *Policy, _ *agency.Run, r *api.RemoveRunRequest) error {
	if !r.Discard {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the user may remove work that cannot be saved").WithHint("leave the run as it is, or drop --discard")
}

// limitVerify keeps an agent from approving changed checks.
func limitVerify(_ *Policy, _ *agency.Run, r *api.VerifyRunRequest) error {
	if !r.Approve {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the user may approve a change of what the checks run").WithHint("ask for it: agency report needs-input")
}

// limitQueue keeps an agent from approving what lands, unless the user lets agents do so.
func limitQueue(p *Policy, _ *agency.Run, r *api.AddToQueueRequest) error {
	if !r.Approve || p.Config().Queue.Approve == config.ApproveAgents {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the user may approve what lands").WithHint("add it without approve, and ask for it: agency report needs-input")
}

// limitTags keeps an agent that is not an orchestrator from making another one.
func limitTags(p *Policy, by *agency.Run, r *api.ChangeTagsRequest) error {
	return p.limitTags(by, r.Add)
}

func (p *Policy) limitTags(by *agency.Run, tags []string) error {
	tag := p.orchestratorTag()
	if by == nil || by.HasTag(tag) || !slices.Contains(tags, tag) {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s does not have the tag %s, so it cannot give it", by.Ref(), tag).WithHint("the user can: agency tags add")
}

// limitUpdate keeps an agent from changing how many agents of a session run at once.
func limitUpdate(_ *Policy, by *agency.Run, r *api.UpdateSessionRequest) error {
	if by == nil || r.MaxParallel == 0 {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the user may change how many agents of a session run at once").WithHint("agency report needs-input")
}
