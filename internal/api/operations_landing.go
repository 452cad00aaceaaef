package api

import "agency"

// The operations on landings.
var (
	ReviewRun = Operation[ReviewRunRequest, ReviewRunResponse]{
		Name: "run.review", Kind: Waits,
		Help: "Show what a run would bring into a branch, and what is in the way.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeInvalidPath,
		},
		Example: `{"run": "fix-login", "into": "main"}`,
		Tool: &Tool{Name: "run_review", Extra: true, Help: `Show what a run's work would bring into a branch: commits, files, what is not committed, conflicts with the branch, what is known
of its checks (run_verify), and in obstacle why it cannot land now. run_diff has the lines. Only the user lands work.` + Untrusted},
	}
	AddComments = Operation[AddCommentsRequest, CommentsResponse]{
		Name: "comment.add", Kind: Acts,
		Help: "Record comments on lines of a run's work.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState, agency.CodeInvalidPath,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeSourceMoved, agency.CodeNothingToLand,
		},
		Example: `{"run": "fix-login", "comments": [{"file": "login.go", "line": 12, "text": "Check the error."}]}`,
	}
	DiscardComments = Operation[DiscardCommentsRequest, CommentsResponse]{
		Name: "comment.discard", Kind: Acts,
		Help:    "Take comments back that the agent does not have.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState},
		Example: `{"run": "fix-login", "numbers": [2]}`,
	}
	SendComments = Operation[SendCommentsRequest, SendCommentsResponse]{
		Name: "comment.send", Kind: Acts,
		Help: "Send the comments on a run's work to its agent, as one message.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState, agency.CodeInputRefused, agency.CodeTmuxSessionNotFound,
		},
		Example: `{"run": "fix-login"}`,
	}
	MarkReviewed = Operation[MarkReviewedRequest, RunResponse]{
		Name: "review.mark", Kind: Acts,
		Help:    "Mark files of a run's work as reviewed, until they change.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidPath},
		Example: `{"run": "fix-login", "files": [{"path": "login.go", "object": "ce013625030ba8dba906f756967f9e9ca394464a"}]}`,
	}
	MergeRun = Operation[MergeRunRequest, MergeRunResponse]{
		Name: "run.merge", Kind: Acts,
		Help: "Bring the work of a run into a branch, or take a landing back.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeInvalidPath,
			agency.CodeUncommitted, agency.CodeSourceMoved, agency.CodeNothingToLand, agency.CodeMergeConflict,
			agency.CodeTargetMoved, agency.CodeTargetDirty, agency.CodeIntegrity, agency.CodeLandingNotFound, agency.CodeLandingOpen,
			agency.CodeCheckFailed, agency.CodeCheckTimeout, agency.CodeApprovalRequired, agency.CodeTrustRequired,
			agency.CodeSetupFailed, agency.CodeWorktreeFailed, agency.CodeCleanupFailed,
		},
		Example: `{"run": "fix-login", "into": "main", "method": "squash"}`,
	}
	ReviewSession = Operation[ReviewSessionRequest, ReviewSessionResponse]{
		Name: "session.review", Kind: Waits,
		Help: "Show what the agents of a session would bring into a branch, and what is in the way.",
		Errors: []agency.Code{
			agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNothingToLand, agency.CodeInvalidState,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeInvalidPath,
		},
		Example: `{"session": "auth"}`,
	}
	MergeSession = Operation[MergeSessionRequest, MergeSessionResponse]{
		Name: "session.merge", Kind: Acts,
		Help:    "Bring the work of a settled session into a branch, run by run up to the first refusal, which names what landed.",
		Errors:  append([]agency.Code{agency.CodeSessionNotFound}, MergeRun.Errors...),
		Example: `{"session": "auth", "into": "main"}`,
	}
	AbandonRun = Operation[AbandonRunRequest, RunResponse]{
		Name: "run.abandon", Kind: Acts,
		Help:    "Mark an ended run as given up; nothing of it is deleted.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState},
		Example: `{"run": "fix-login"}`,
	}
)
