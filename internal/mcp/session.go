package mcp

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
	"agency/internal/view"
)

// mostAgents is how many agents of a session one answer lists.
const mostAgents = 200

// plan is the source of a plan.
type plan struct {
	File        string           `json:"file,omitempty" jsonschema:"a plan: YAML, or a folder of NNN-name.md prompts"`
	Text        string           `json:"yaml,omitempty" jsonschema:"the plan itself: agents with id, prompt, after: [ids], runner or preset, touches"`
	Agents      []string         `json:"agents,omitempty" jsonschema:"instead of a plan: runners such as claude_code:3"`
	Prompt      string           `json:"prompt,omitempty" jsonschema:"the common task of agents"`
	Name        string           `json:"name,omitempty"`
	Base        string           `json:"base,omitempty" jsonschema:"what to start from; deps: the merged dependencies"`
	MaxParallel int              `json:"max_parallel,omitempty" jsonschema:"how many at once"`
	OnFailure   agency.OnFailure `json:"on_failure,omitempty" jsonschema:"when an agent fails"`
	Land        agency.LandBy    `json:"land,omitempty" jsonschema:"how work lands"`
}

func (s *Server) source(in *plan) api.PlanSource {
	source := api.PlanSource{
		Path: in.File, Text: in.Text, Agents: append([]string{}, in.Agents...), Prompt: in.Prompt,
		Name: in.Name, Base: in.Base, MaxParallel: in.MaxParallel, OnFailure: string(in.OnFailure), Land: string(in.Land),
	}
	if source.Path != "" && !filepath.IsAbs(source.Path) {
		source.Path = filepath.Join(s.Dir, source.Path)
	}
	return source
}

// agentRow is an agent of a session as orchestrators see it.
type agentRow struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Wave       int                 `json:"wave"`
	Status     agency.AgentStatus  `json:"status"`
	After      []string            `json:"after"`
	Run        string              `json:"run,omitempty"` // for the tools that take a run
	Label      agency.Label        `json:"run_status,omitempty"`
	Note       string              `json:"note,omitempty"`
	WaitReason string              `json:"wait_reason,omitempty"` // why it has no attempt although no action is needed
	Error      string              `json:"error,omitempty"`
	Attempts   int                 `json:"attempts,omitempty"`
	Branch     string              `json:"branch,omitempty"`
	Result     *agency.AgentResult `json:"result,omitempty"`
	Landed     *api.AgentLanding   `json:"landed,omitempty"`
}

// sessionAnswer is the answer of most of the tools about sessions.
type sessionAnswer struct {
	Session  api.Session `json:"session"`
	Agents   []agentRow  `json:"agents"`
	Omitted  int         `json:"agents_omitted,omitempty"`
	TimedOut *bool       `json:"timed_out,omitempty"`
}

// newSessionAnswer lists the agents with one of the statuses, or all. When they are too many, it
// omits those that need a user least.
func newSessionAnswer(resp *api.ShowSessionResponse, statuses []agency.AgentStatus) sessionAnswer {
	agents := slices.DeleteFunc(slices.Clone(resp.Agents), func(a api.SessionAgent) bool {
		return len(statuses) > 0 && !slices.Contains(statuses, a.Status)
	})
	answer := sessionAnswer{Session: resp.Session, Agents: []agentRow{}, Omitted: max(0, len(agents)-mostAgents)}
	if answer.Omitted > 0 {
		slices.SortStableFunc(agents, func(a, b api.SessionAgent) int { return cmp.Compare(view.Urgency(&a), view.Urgency(&b)) })
		agents = agents[:mostAgents]
	}
	for i := range agents {
		a := &agents[i]
		answer.Agents = append(answer.Agents, agentRow{
			ID: a.ID, Name: a.Name, Wave: a.Wave, Status: a.Status, After: a.After, Run: a.Run, Label: a.Label, Note: a.Note, WaitReason: a.WaitReason,
			Error: a.Error, Attempts: a.Attempts, Branch: a.Branch, Result: a.Result, Landed: a.Landed,
		})
	}
	return answer
}

func (s *Server) addSessions(tools *toolset) error {
	type filter struct {
		Live  bool `json:"live,omitempty" jsonschema:"only those that run"`
		Limit int  `json:"limit,omitempty" jsonschema:"how many of the newest; default 20"`
	}
	type show struct {
		Session string               `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
		Status  []agency.AgentStatus `json:"status,omitempty" jsonschema:"only agents with one of these"`
	}
	return errors.Join(
		add(tools, api.PlanSession, func(ctx context.Context, _ *sdk.CallToolRequest, in plan) (any, error) {
			return api.Call(ctx, s.Client, api.PlanSession, api.PlanSessionRequest{Plan: s.source(&in), Dir: s.Dir, Env: s.Env, Config: s.Config})
		}),
		add(tools, api.StartSession, func(ctx context.Context, _ *sdk.CallToolRequest, in plan) (any, error) {
			return api.Call(ctx, s.Client, api.StartSession, api.StartSessionRequest{Plan: s.source(&in), Dir: s.Dir, Env: s.Env, Config: s.Config})
		}),
		add(tools, api.ListSessions, func(ctx context.Context, _ *sdk.CallToolRequest, in filter) (any, error) {
			if in.Limit <= 0 {
				in.Limit = 20
			}
			return api.Call(ctx, s.Client, api.ListSessions, api.ListSessionsRequest{Dir: s.scope(), Live: in.Live, Limit: in.Limit})
		}),
		add(tools, api.ShowSession, func(ctx context.Context, _ *sdk.CallToolRequest, in show) (any, error) {
			for _, status := range in.Status {
				if !slices.Contains(agency.AgentStatuses(), status) {
					return nil, agency.Errorf(agency.CodeUsage, "%q is not a status of an agent", status).WithHint("one of: queued, running, complete, failed, cancelled")
				}
			}
			resp, err := s.session(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return newSessionAnswer(resp, in.Status), nil
		}),
		s.addSessionActs(tools),
		s.addSessionWait(tools),
	)
}

// agentOutcome is a report on an agent that the client runs itself.
type agentOutcome struct {
	Agent    string            `json:"agent,omitempty" jsonschema:"its id; without it the report is on the session: complete or cancel"`
	Action   api.SessionAction `json:"action"`
	PID      int               `json:"pid,omitempty" jsonschema:"of start"`
	ExitCode int               `json:"exit_code,omitempty" jsonschema:"of fail; default 1"`
	Error    string            `json:"error,omitempty" jsonschema:"of fail and cancel"`
}

func (o *agentOutcome) update() api.SessionUpdate {
	u := api.SessionUpdate{Agent: o.Agent, Action: o.Action, Error: o.Error}
	if o.PID != 0 {
		u.PID = &o.PID
	}
	if o.ExitCode != 0 {
		u.ExitCode = &o.ExitCode
	}
	return u
}

func (s *Server) addSessionActs(tools *toolset) error {
	type resumption struct {
		Session     string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
		PlanChanged bool   `json:"plan_changed_ok,omitempty" jsonschema:"keep the plan of its start"`
	}
	type retry struct {
		Session     string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
		Failed      bool   `json:"failed_only,omitempty" jsonschema:"only what failed and what it cancelled"`
		PlanChanged bool   `json:"plan_changed_ok,omitempty" jsonschema:"keep the plan of its start"`
		NewPlan     bool   `json:"new_plan,omitempty" jsonschema:"run by its files as of now"`
	}
	type update struct {
		Session string         `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
		Updates []agentOutcome `json:"updates" jsonschema:"reports, in order"`
	}
	return errors.Join(
		addKeys(tools, api.PauseSession, func(ctx context.Context, _ *sdk.CallToolRequest, in api.SessionRequest) (any, error) {
			id, err := s.sessionID(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return api.Call(ctx, s.Client, api.PauseSession, api.SessionRequest{Session: id, Dir: s.Dir})
		}),
		add(tools, api.ResumeSession, func(ctx context.Context, _ *sdk.CallToolRequest, in resumption) (any, error) {
			id, err := s.sessionID(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return api.Call(ctx, s.Client, api.ResumeSession, api.ResumeSessionRequest{Session: id, Dir: s.Dir, PlanChanged: in.PlanChanged})
		}),
		addKeys(tools, api.CancelSession, func(ctx context.Context, _ *sdk.CallToolRequest, in api.SessionRequest) (any, error) {
			id, err := s.sessionID(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return api.Call(ctx, s.Client, api.CancelSession, api.SessionRequest{Session: id, Dir: s.Dir})
		}),
		add(tools, api.RetrySession, func(ctx context.Context, _ *sdk.CallToolRequest, in retry) (any, error) {
			id, err := s.sessionID(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return api.Call(ctx, s.Client, api.RetrySession, api.RetrySessionRequest{
				Session: id, Dir: s.Dir, Failed: in.Failed, PlanChanged: in.PlanChanged, NewPlan: in.NewPlan, Env: s.Env, Config: s.Config,
			})
		}),
		add(tools, api.UpdateSession, func(ctx context.Context, _ *sdk.CallToolRequest, in update) (any, error) {
			id, err := s.sessionID(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			updates := make([]api.SessionUpdate, 0, len(in.Updates))
			for i := range in.Updates {
				updates = append(updates, in.Updates[i].update())
			}
			return api.Call(ctx, s.Client, api.UpdateSession, api.UpdateSessionRequest{Session: id, Dir: s.Dir, Updates: updates})
		}),
	)
}

func (s *Server) addSessionWait(tools *toolset) error {
	type waiting struct {
		Session string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
		Settled bool   `json:"settled_only,omitempty" jsonschema:"do not return when an action is needed"`
		Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"default 45, at most 600"`
	}
	return add(tools, api.WaitSession, func(ctx context.Context, req *sdk.CallToolRequest, in waiting) (any, error) {
		wait, err := duration(in.Seconds, usualWait)
		if err != nil {
			return nil, err
		}
		id, err := s.sessionID(ctx, in.Session)
		if err != nil {
			return nil, err
		}
		defer reportProgress(ctx, req, wait, "waiting for session "+id)()
		resp, err := api.Call(ctx, s.Client, api.WaitSession, api.WaitSessionRequest{
			Session: id, Dir: s.Dir, Attention: !in.Settled, TimeoutMS: wait.Milliseconds(),
		})
		if err != nil {
			return nil, err
		}
		resp.Agents = slices.DeleteFunc(resp.Agents, well)
		needed := !in.Settled && resp.Session.NeedsUser()
		timedOut := !resp.Session.Status.Final() && !needed
		answer := newSessionAnswer(&resp, nil)
		answer.TimedOut = &timedOut
		return answer, nil
	})
}

// well reports whether an agent needs no attention.
func well(a api.SessionAgent) bool {
	switch a.Status {
	case agency.AgentComplete:
		return true
	case agency.AgentQueued, agency.AgentRunning:
		return !a.NeedsUser
	default:
		return false
	}
}

// session returns the session that a reference means, if the tools see it.
func (s *Server) session(ctx context.Context, ref string) (*api.ShowSessionResponse, error) {
	resp, err := api.Call(ctx, s.Client, api.ShowSession, api.SessionRequest{Session: ref, Dir: s.Dir})
	if err != nil || s.AllRepos {
		return &resp, err
	}
	own, err := api.Call(ctx, s.Client, api.ListSessions, api.ListSessionsRequest{Dir: s.Dir, Limit: 1}) // to learn the repository
	if err != nil {
		return nil, err
	}
	if len(own.Sessions) == 0 || own.Sessions[0].Repo != resp.Session.Repo {
		return nil, agency.Errorf(agency.CodeSessionNotFound, "%q is a session of another repository", ref).
			WithHint("session_list shows those of this one; the user can start the tools for all of them: agency mcp --all-repos")
	}
	return &resp, nil
}

func (s *Server) sessionID(ctx context.Context, ref string) (string, error) {
	resp, err := s.session(ctx, ref)
	if err != nil {
		return "", err
	}
	return resp.Session.Ref(), nil
}
