package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"agency"
	"agency/internal/api"
)

// The person may do everything. What a run may do is in one table, policy: an operation that is not in it is the person's alone.

// standing is how a run stands to what a request is about; it can stand in several ways.
type standing uint8

const (
	itself    standing = 1 << iota // it is the run in question
	owner                          // it started that, or a run in between did
	leader                         // it has the orchestrator's tag, and that is in its repository
	neighbour                      // that is the repository that it works in
	anyRun                         // every run stands so to everything
)

// rule says which runs may do an operation.
type rule struct {
	runs standing
	// about finds out how a run stands to what a request is about, and makes the reference to that in the request one that cannot
	// come to mean something else; nil where it is about nothing in particular.
	about func(ctx context.Context, d *Daemon, by *agency.Run, req any) (standing, error)
	// limit refuses to an agent what it may not ask; nil is nothing. by is nil for tools that do not belong to a run.
	limit func(d *Daemon, by *agency.Run, req any) error
}

// everyRun is for what tells no more than the files of the user, or what the handler bounds by who asks.
var everyRun = rule{runs: anyRun}

// theirs are the runs that a run may act on.
const theirs = owner | leader

var policy = map[string]rule{
	api.ListRuns.Name: everyRun, api.ShowRun.Name: everyRun, api.ExplainRun.Name: everyRun, api.ShowOutput.Name: everyRun, api.DiffRun.Name: everyRun,
	api.WaitRuns.Name: everyRun, api.ListSnapshots.Name: everyRun, api.ShowSnapshot.Name: everyRun, api.ShowTrust.Name: everyRun,
	api.ListAlerts.Name: everyRun, api.ExplainWatchdog.Name: everyRun, api.ListTimers.Name: everyRun, api.ListEvents.Name: everyRun,
	api.DaemonStatus.Name: everyRun, api.ListSessions.Name: everyRun, api.ShowSession.Name: everyRun, api.WaitSession.Name: everyRun,
	api.EventsPath: everyRun, api.LogsPath: everyRun,
	// A run reads its own inbox and ends its own timers, and a message says whom it is from.
	api.SendMessage.Name: everyRun, api.PollMessages.Name: everyRun, api.AckMessages.Name: everyRun, api.ListMessages.Name: everyRun, api.StopTimers.Name: everyRun,

	api.CreateRun.Name:     inRepo(func(r *api.CreateRunRequest) string { return from(r.Dir, r.Spec.Repo) }),
	api.PlanSession.Name:   inRepo(func(r *api.PlanSessionRequest) string { return r.Dir }),
	api.StartSession.Name:  inRepo(func(r *api.StartSessionRequest) string { return r.Dir }),
	api.CreateSession.Name: inRepo(func(r *api.CreateSessionRequest) string { return r.Dir }),

	api.AnswerRun.Name:       onRun(theirs, func(r *api.AnswerRunRequest) *string { return &r.Run }),
	api.SendInput.Name:       limited(onRun(theirs, func(r *api.SendInputRequest) *string { return &r.Run }), limitInput),
	api.StartTimer.Name:      limited(onRun(itself|theirs, func(r *api.StartTimerRequest) *string { return &r.Run }), limitTimer),
	api.StopRun.Name:         onRun(itself|theirs, runRequest),
	api.ResumeRun.Name:       onRun(theirs, func(r *api.ResumeRunRequest) *string { return &r.Run }),
	api.RemoveRun.Name:       limited(onRun(theirs, func(r *api.RemoveRunRequest) *string { return &r.Run }), limitRemoval),
	api.ChangeTags.Name:      limited(onRun(theirs, func(r *api.ChangeTagsRequest) *string { return &r.Run }), limitTags),
	api.FlagRun.Name:         onRun(itself|theirs, func(r *api.FlagRunRequest) *string { return &r.Run }),
	api.UnflagRun.Name:       onRun(theirs, runRequest),
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

	// The person's alone.
	api.AttachRun.Name: {}, api.CollectRuns.Name: {}, api.CheckDatabase.Name: {}, api.BackupDatabase.Name: {}, api.InitRepo.Name: {},
	api.GrantTrust.Name: {}, api.RevokeTrust.Name: {}, api.TestNotify.Name: {}, api.ListChannels.Name: {}, api.Doctor.Name: {}, api.StopDaemon.Name: {},
}

func runRequest(r *api.RunRequest) *string { return &r.Run }

func sessionRequest(r *api.SessionRequest) (ref *string, dir string) { return &r.Session, r.Dir }

// from is a path as seen from a folder.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func onRun[Req any](runs standing, ref func(*Req) *string) rule {
	return rule{runs: runs, about: func(ctx context.Context, d *Daemon, by *agency.Run, req any) (standing, error) {
		at := ref(req.(*Req))
		r, err := d.sup.Records.Resolve(ctx, *at)
		if err != nil {
			return 0, err
		}
		*at = string(r.ID)
		return d.standsToRun(ctx, by, r)
	}}
}

func onSession[Req any](ref func(*Req) (*string, string)) rule {
	return rule{runs: theirs, about: func(ctx context.Context, d *Daemon, by *agency.Run, req any) (standing, error) {
		at, dir := ref(req.(*Req))
		if *at == "" {
			return 0, nil // every session, or none
		}
		s, err := d.lookUp(ctx, *at, dir)
		if err != nil {
			return 0, err
		}
		*at = string(s.ID)
		return d.standsTo(ctx, by, s.Owner, s.Repo)
	}}
}

// onAlerts is for what a run does with alerts on others: its own tell that somebody must look at it.
func onAlerts[Req any](ids func(*Req) []string) rule {
	return rule{runs: theirs, about: func(ctx context.Context, d *Daemon, by *agency.Run, req any) (standing, error) {
		alerts, err := d.store.Alerts(ctx, agency.AlertFilter{IDs: ids(req.(*Req)), Resolved: true})
		for i := range alerts {
			stands, err := d.standsToAlert(ctx, by, &alerts[i])
			if err != nil || stands&theirs == 0 {
				return 0, err
			}
		}
		return theirs, err
	}}
}

func inRepo[Req any](dir func(*Req) string) rule {
	return rule{runs: neighbour, about: func(ctx context.Context, d *Daemon, by *agency.Run, req any) (standing, error) {
		repo, err := d.git.Discover(ctx, dir(req.(*Req)))
		if err != nil || repo.Fingerprint != by.Repo.Fingerprint {
			return 0, err
		}
		return neighbour, nil
	}}
}

func limited[Req any](r rule, limit func(d *Daemon, by *agency.Run, req *Req) error) rule {
	r.limit = func(d *Daemon, by *agency.Run, req any) error { return limit(d, by, req.(*Req)) }
	return r
}

// allow refuses a request of an agent that the policy does not allow. It may change a reference in the request into an id.
func (d *Daemon) allow(ctx context.Context, operation string, req any) error {
	r := policy[operation]
	if r.runs == anyRun && r.limit == nil {
		return nil
	}
	by, asks, err := d.agent(ctx)
	if err != nil || !asks {
		return err
	}
	if by != nil {
		stands := anyRun
		if r.runs != 0 && r.about != nil {
			if stands, err = r.about(ctx, d, by, req); err != nil {
				return err
			}
		}
		if r.runs&stands == 0 {
			return notAllowed(operation, by, r.runs)
		}
	}
	if r.limit != nil {
		return r.limit(d, by, req)
	}
	return nil
}

// notAllowed says who may do what a run may not.
func notAllowed(operation string, by *agency.Run, may standing) error {
	return agency.Errorf(agency.CodePermissionDenied, "%s may not do %s here: %s", by.Ref(), strings.TrimPrefix(operation, "/v1/"), may.words()).
		WithDetail("operation", operation).WithHint("docs/policy.md says what a run may do; ask the person: agency report needs-input")
}

// words says who may do an operation, besides the person.
func (s standing) words() string {
	if s == 0 {
		return "only the person may"
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

// standsToRun is how a run stands to another one, or itself.
func (d *Daemon) standsToRun(ctx context.Context, by, r *agency.Run) (standing, error) {
	if r.ID == by.ID {
		return itself, nil
	}
	return d.standsTo(ctx, by, r.Owner, r.Repo)
}

// standsTo is how a run stands to what somebody started in a repository.
func (d *Daemon) standsTo(ctx context.Context, by *agency.Run, startedBy string, repo agency.Repo) (standing, error) {
	var stands standing
	owners, err := d.sup.Callers.Owners(ctx, startedBy)
	if slices.Contains(owners, by.ID) {
		stands |= owner
	}
	if repo.Fingerprint == by.Repo.Fingerprint && by.HasTag(d.orchestratorTag()) {
		stands |= leader
	}
	return stands, err
}

func (d *Daemon) standsToAlert(ctx context.Context, by *agency.Run, a *agency.Alert) (standing, error) {
	if a.Session != "" {
		s, err := d.store.Session(ctx, a.Session)
		if err != nil {
			return 0, err
		}
		return d.standsTo(ctx, by, s.Owner, s.Repo)
	}
	if a.RunID == "" {
		return 0, nil // the machine is the person's
	}
	r, err := d.store.Run(ctx, a.RunID)
	if err != nil {
		return 0, err
	}
	return d.standsToRun(ctx, by, r)
}

func (d *Daemon) orchestratorTag() string { return d.active.config().Watchdog.OrchestratorTag }

// limitInput keeps an agent from typing what is a command of the program that it types into: Claude Code, Codex, Gemini and
// OpenCode run a line that begins with ! in a shell, without asking.
func limitInput(_ *Daemon, _ *agency.Run, r *api.SendInputRequest) error { return plainMessage(r.Text) }

func limitTimer(_ *Daemon, _ *agency.Run, r *api.StartTimerRequest) error {
	return plainMessage(r.Message)
}

func plainMessage(text string) error {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "/") {
		return agency.Errorf(agency.CodePermissionDenied, "a message of an agent may not begin with %q: it would be a command of the program that it is typed into", text[:1]).
			WithHint("say it in words")
	}
	return nil
}

// limitRemoval keeps an agent from removing what cannot be saved.
func limitRemoval(_ *Daemon, _ *agency.Run, r *api.RemoveRunRequest) error {
	if !r.Force {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the person may remove work that cannot be saved").WithHint("leave the run as it is, or drop --force")
}

// limitTags keeps an agent from making another one the orchestrator that it is not itself.
func limitTags(d *Daemon, by *agency.Run, r *api.ChangeTagsRequest) error {
	return d.limitTags(by, r.Add)
}

func (d *Daemon) limitTags(by *agency.Run, tags []string) error {
	tag := d.orchestratorTag()
	if by == nil || by.HasTag(tag) || !slices.Contains(tags, tag) {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s has not the tag %s, and cannot give it", by.Ref(), tag).WithHint("the person can: agency tags add")
}

// limitUpdate keeps an agent from having more agents run at once than it was started with.
func limitUpdate(_ *Daemon, by *agency.Run, r *api.UpdateSessionRequest) error {
	if by == nil || r.MaxParallel == 0 {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the person may change how many agents of a session run at once").WithHint("agency report needs-input")
}
