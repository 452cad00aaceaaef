package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/lander"
	"agency/internal/queuer"
	"agency/internal/scheduler"
	"agency/internal/supervisor"
	"agency/internal/verify"
)

// LandingStore is the record of the landings of sessions.
type LandingStore interface {
	SessionAgents(ctx context.Context, id agency.SessionID) ([]agency.SessionAgent, error)
	Landings(ctx context.Context, id agency.RunID) ([]agency.Landing, error)
	SessionQueue(ctx context.Context, id agency.SessionID) ([]agency.QueueEntry, error)
}

// Landings lands the work of sessions: of all of their agents when a client asks for it, or of each
// as the plan says.
type Landings struct {
	Store  LandingStore
	Runs   *supervisor.Records
	Finder scheduler.Finder
	Lander *lander.Lander
	Queuer *queuer.Queuer
	// Passes returns the function that runs a target's checks on the commit that is to land there. Only
	// the end of the function's context may end the checks: Land records any other end as a refusal.
	Passes func(checking *verify.Request) func(ctx context.Context, repo agency.Repo, l *agency.Landing) error
	// FlagConflict flags a run whose landing was refused by a conflict.
	FlagConflict func(ctx context.Context, ref, reason string) error
	Log          *slog.Logger
}

// Finals returns the runs of the completed agents of a session whose work no other one has, in the
// order of their waves, and the other agents as parts.
func (ln *Landings) Finals(ctx context.Context, ref, dir string) (*agency.Session, []*agency.Run, []api.SessionPart, error) {
	fail := func(err error) (*agency.Session, []*agency.Run, []api.SessionPart, error) { return nil, nil, nil, err }
	s, err := ln.Finder.LookUp(ctx, ref, dir)
	if err != nil {
		return fail(err)
	}
	agents, err := ln.Store.SessionAgents(ctx, s.ID)
	if err != nil {
		return fail(err)
	}
	slices.SortStableFunc(agents, func(a, b agency.SessionAgent) int { return cmp.Compare(a.Wave, b.Wave) })
	runs, names := []*agency.Run{}, map[agency.RunID]string{}
	for i := range agents {
		if a := &agents[i]; a.Status == agency.AgentComplete && a.Run != "" {
			r, err := ln.Runs.Run(ctx, a.Run)
			if err != nil {
				return fail(err)
			}
			runs, names[r.ID] = append(runs, r), a.ID
		}
	}
	if len(runs) == 0 {
		return fail(agency.Errorf(agency.CodeNothingToLand, "no agent of session %s is complete", s.ID).WithHint("agency session show %s", s.ID))
	}
	final, parts, err := ln.Lander.Final(ctx, runs)
	if err != nil {
		return fail(err)
	}
	others := []api.SessionPart{}
	for _, r := range runs {
		if in := parts[r.ID]; len(in) > 0 {
			part := api.SessionPart{Agent: names[r.ID], RunID: r.ID, Of: []string{}}
			for _, other := range in {
				part.Of = append(part.Of, names[other.ID])
			}
			others = append(others, part)
		}
	}
	return s, final, others, nil
}

// Merge lands the final work of a session with land, one run after the other. It stops at the first
// refusal, whose error names what has landed. A run without anything to land is not a refusal.
func (ln *Landings) Merge(
	ctx context.Context, req api.MergeSessionRequest, land func(context.Context, api.MergeRunRequest) (api.MergeRunResponse, error),
) (api.MergeSessionResponse, error) {
	s, final, parts, err := ln.Finals(ctx, req.Session, req.Dir)
	if err != nil {
		return api.MergeSessionResponse{}, err
	}
	if !s.Status.Final() {
		return api.MergeSessionResponse{}, agency.Errorf(agency.CodeInvalidState, "session %s is running", s.ID).
			WithHint("wait for it: agency session wait %s; or land one of its agents: agency merge %s/AGENT", s.ID, cmp.Or(s.Name, string(s.ID)))
	}
	resp := api.MergeSessionResponse{SessionID: s.ID, Landings: []api.MergeRunResponse{}, Parts: parts}
	var nothing error
	for _, r := range final {
		landed, err := land(ctx, api.MergeRunRequest{
			Run: string(r.ID), Into: req.Into, Method: req.Method, IncludeUncommitted: req.IncludeUncommitted, DryRun: req.DryRun, NoVerify: req.NoVerify,
			Approve: req.Approve, Landed: req.Landed, Env: req.Env, Config: req.Config,
		})
		switch {
		case agency.IsCode(err, agency.CodeNothingToLand):
			nothing = err
		case err != nil:
			return api.MergeSessionResponse{}, refusedAfter(err, resp.Landings, req.DryRun)
		default:
			resp.Landings = append(resp.Landings, landed)
		}
	}
	if len(resp.Landings) == 0 && nothing == nil {
		nothing = agency.Errorf(agency.CodeNothingToLand, "the agents of session %s changed nothing", s.ID).WithHint("agency session show %s", s.ID)
	}
	if len(resp.Landings) == 0 {
		return api.MergeSessionResponse{}, nothing
	}
	return resp, nil
}

// refusedAfter adds to a refusal what has landed before it.
func refusedAfter(err error, landed []api.MergeRunResponse, dry bool) error {
	if len(landed) == 0 || dry {
		return err
	}
	e, ids, words := *agency.AsError(err), []agency.LandingID{}, []string{}
	for i := range landed {
		l := &landed[i]
		ids, words = append(ids, l.Landing.ID), append(words, fmt.Sprintf("%s as %.12s", l.Run.Ref(), l.Landing.Candidate))
	}
	details := map[string]any{"landed": ids}
	maps.Copy(details, e.Details)
	e.Details, e.Message = details, e.Message+"; landed before it: "+strings.Join(words, ", ")
	return &e
}
