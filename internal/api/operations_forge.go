package api

import "agency"

// The operations on remotes and pull requests. The client reaches the remote itself, with the
// credentials of its user; the daemon decides what is to be there and records what is.
var (
	PlanPush = Operation[PlanPushRequest, PlanPushResponse]{
		Name: "push.plan", Kind: Waits,
		Help: "Show what agency push would push, and where.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState, agency.CodeBadRef, agency.CodeEmptyRepo,
			agency.CodeNotGitRepo, agency.CodeInvalidPath, agency.CodeUncommitted, agency.CodeSourceMoved, agency.CodeNothingToLand,
			agency.CodeLandingNotFound, agency.CodeTrustRequired,
		},
		Example: `{"run": "fix-login", "remote": "origin"}`,
	}
	RecordPush = Operation[RecordPushRequest, PushResponse]{
		Name: "push.record", Kind: Acts,
		Help:    "Record that a commit is being pushed for a run, or that the remote has it.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous},
		Example: `{"run": "fix-login", "url": "https://example.com/me/app.git", "branch": "agency/fix-login", "commit": "4f2a9c1d7e304f2a9c1d7e304f2a9c1d7e304f2a", "done": true}`,
	}
	PlanPR = Operation[PlanPRRequest, PlanPRResponse]{
		Name: "pr.plan", Kind: Waits,
		Help: "Show what the pull request of a run is to say, and where it is made.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState, agency.CodeBadRef, agency.CodeEmptyRepo,
			agency.CodeNotGitRepo, agency.CodeInvalidPath, agency.CodeTrustRequired,
		},
		Example: `{"run": "fix-login"}`,
	}
	RecordPR = Operation[RecordPRRequest, RunResponse]{
		Name: "pr.record", Kind: Acts,
		Help:    "Record the pull request of a run, as its forge shows it.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState, agency.CodeBadRef, agency.CodeNotGitRepo, agency.CodeInvalidPath},
		Example: `{"run": "fix-login", "forge": "github", "number": 7, "url": "https://github.com/me/app/pull/7", "state": "open", "branch": "agency/fix-login", "base": "main"}`,
	}
)
