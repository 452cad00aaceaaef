package api

import "agency"

// The operations on sessions.
var (
	PlanSession = Operation[PlanSessionRequest, PlanSessionResponse]{
		Name: "session.plan", Kind: Waits,
		Help: "Show what a session plan would do; it starts nothing.",
		Errors: []agency.Code{
			agency.CodePlanInvalid, agency.CodeSpecInvalid, agency.CodeNotGitRepo,
			agency.CodeEmptyRepo, agency.CodeBadRef, agency.CodeInvalidPath,
			agency.CodeRunnerNotConfigured, agency.CodeTrustRequired, agency.CodeSetupFailed,
			agency.CodeInvalidState, agency.CodeRunNotFound,
		},
		Example: `{"plan": {"path": "/home/me/project/plan.yaml"}, "dir": "/home/me/project"}`,
		Tool:    &Tool{Name: "session_plan", Help: "What a plan of dependent agents would do: waves, branches, commands. Starts nothing; look at it before session_start."},
	}
	StartSession = Operation[StartSessionRequest, SessionResponse]{
		Name: "session.start", Kind: Acts,
		Help: "Run a plan of dependent agents.",
		Errors: []agency.Code{
			agency.CodePlanInvalid, agency.CodeSpecInvalid, agency.CodeNotGitRepo,
			agency.CodeEmptyRepo, agency.CodeBadRef, agency.CodeInvalidPath,
			agency.CodeRunnerNotConfigured, agency.CodeTrustRequired, agency.CodeSetupFailed,
			agency.CodeInvalidState, agency.CodeRunNotFound, agency.CodeNameExists,
			agency.CodeSessionNotFound,
		},
		Example: `{"plan": {"agents": ["claude_code:2"], "prompt": "Find a bug and fix it."}, "dir": "/home/me/project"}`,
		Tool: &Tool{Name: "session_start", Help: `Run a plan of dependent agents: each starts when those before it are done. You get a message when the session has settled
(session.complete, .failed, .cancelled) or needs an action (.paused, .waiting).`},
	}
	ListSessions = Operation[ListSessionsRequest, ListSessionsResponse]{
		Name: "session.list", Kind: Reads,
		Help:    "List sessions, newest first.",
		Errors:  []agency.Code{agency.CodeNotGitRepo, agency.CodeInvalidPath},
		Example: `{"live": true}`,
		Tool:    &Tool{Name: "session_list", Extra: true, Help: "List sessions, newest first, with the number of their agents in each state." + Untrusted},
	}
	ShowSession = Operation[SessionRequest, ShowSessionResponse]{
		Name: "session.show", Kind: Reads,
		Help: "Show everything about one session.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath,
		},
		Example: `{"session": "latest", "dir": "/home/me/project"}`,
		Tool:    &Tool{Name: "session_show", Help: "One session with its agents, and the results of finished ones: commits, lines, tests, tokens, cost." + Untrusted},
	}
	WaitSession = Operation[WaitSessionRequest, ShowSessionResponse]{
		Name: "session.wait", Kind: Waits,
		Help: "Wait until a session has settled.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath,
		},
		Example: `{"session": "latest", "dir": "/home/me/project", "attention": true, "timeout_ms": 60000}`,
		Tool: &Tool{Name: "session_wait", Help: `Wait until a session has settled or needs an action; shows the agents that need attention. timed_out: neither happened yet; call it
again.` + Untrusted},
	}
	PauseSession = Operation[SessionRequest, SessionResponse]{
		Name: "session.pause", Kind: Acts,
		Help: "Start no more agents of a session.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath, agency.CodeInvalidState, agency.CodeAgentNotFound,
		},
		Example: `{"session": "20261122-091500-1a2b3c4d"}`,
		Tool:    &Tool{Name: "session_pause", Extra: true, Required: []string{"session"}, Help: "Start no more agents of a session; those that run continue."},
	}
	ResumeSession = Operation[ResumeSessionRequest, SessionResponse]{
		Name: "session.resume", Kind: Acts,
		Help: "Continue a paused session.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath, agency.CodeInvalidState, agency.CodeAgentNotFound,
			agency.CodePlanChanged, agency.CodePlanInvalid, agency.CodeSpecInvalid,
		},
		Example: `{"session": "20261122-091500-1a2b3c4d"}`,
		Tool:    &Tool{Name: "session_resume", Help: "Continue a paused session, or check again what kept an agent from starting."},
	}
	CancelSession = Operation[SessionRequest, SessionResponse]{
		Name: "session.cancel", Kind: Acts,
		Help: "End all agents of a session; their worktrees stay.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath, agency.CodeInvalidState, agency.CodeAgentNotFound,
		},
		Example: `{"session": "20261122-091500-1a2b3c4d"}`,
		Tool:    &Tool{Name: "session_cancel", Destroys: true, Required: []string{"session"}, Help: "End all agents of a session. Their worktrees and branches stay."},
	}
	RetrySession = Operation[RetrySessionRequest, RetrySessionResponse]{
		Name: "session.retry", Kind: Acts,
		Help: "Run again, in a new session, the agents that a settled session left incomplete.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodePlanChanged,
			agency.CodeNameExists, agency.CodePlanInvalid, agency.CodeSpecInvalid,
			agency.CodeNotGitRepo, agency.CodeEmptyRepo, agency.CodeBadRef, agency.CodeInvalidPath,
			agency.CodeRunnerNotConfigured, agency.CodeTrustRequired, agency.CodeSetupFailed,
			agency.CodeInvalidState, agency.CodeRunNotFound,
		},
		Example: `{"session": "20261122-091500-1a2b3c4d", "failed": true}`,
		Tool:    &Tool{Name: "session_retry", Help: "Run again, in a new session, the agents that a settled session left incomplete. Complete ones are taken over."},
	}
	CreateSession = Operation[CreateSessionRequest, SessionResponse]{
		Name: "session.create", Kind: Acts,
		Help: "Record a session whose agents another program runs.",
		Errors: []agency.Code{
			agency.CodePlanInvalid, agency.CodeNameExists, agency.CodeSessionNotFound,
			agency.CodeRunNotFound, agency.CodeInvalidState, agency.CodeNotGitRepo,
			agency.CodeInvalidPath,
		},
		Example: `{"dir": "/home/me/project", "name": "nightly", "agents": [{"id": "001"}, {"id": "002"}]}`,
	}
	UpdateSession = Operation[UpdateSessionRequest, SessionResponse]{
		Name: "session.update", Kind: Acts,
		Help: "Report the progress of a session's agents, or change how many run at once.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath, agency.CodeInvalidState, agency.CodeAgentNotFound,
		},
		Example: `{"session": "20261122-091500-1a2b3c4d", "updates": [{"agent": "001", "action": "complete"}]}`,
		Tool:    &Tool{Name: "session_update", Extra: true, Help: "Report the progress of agents that you run yourself, in a session made with agency session create."},
	}
	RemoveSessions = Operation[RemoveSessionsRequest, RemoveSessionsResponse]{
		Name: "session.remove", Kind: Acts,
		Help: "Remove the records of settled sessions.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo,
			agency.CodeInvalidPath, agency.CodeInvalidState,
		},
		Example: `{"older_than_ms": 604800000, "apply": true}`,
	}
)
