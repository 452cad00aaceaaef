package api

import "agency"

// The operations on landing queues.
var (
	AddToQueue = Operation[AddToQueueRequest, QueueResponse]{
		Name: "queue.add", Kind: Acts,
		Help: "Add runs that land in a branch when their turn comes and its checks pass, or approve them.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeSessionNotFound, agency.CodeInvalidState,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeInvalidPath,
			agency.CodeUncommitted, agency.CodeSourceMoved, agency.CodeNothingToLand, agency.CodeTargetMoved, agency.CodeIntegrity,
		},
		Example: `{"runs": ["fix-login", "fix-logout"], "into": "main"}`,
		Tool:    &Tool{Name: "queue_add", Extra: true, Help: "Have the work of runs that you started land in a branch, in this order, once its checks pass. The user must approve it."},
	}
	ListQueue = Operation[ListQueueRequest, QueueResponse]{
		Name: "queue.list", Kind: Reads,
		Help:    "List the entries of landing queues, and why each is where it is.",
		Errors:  []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo, agency.CodeInvalidPath},
		Example: `{"dir": "/home/me/project"}`,
		Tool:    &Tool{Name: "queue_show", Extra: true, Help: "What waits to land, in order, and why; of one run also what became of it."},
	}
	ChangeQueue = Operation[ChangeQueueRequest, QueueResponse]{
		Name: "queue.change", Kind: Acts,
		Help: "Hold, resume, retry or remove entries of a landing queue.",
		Errors: []agency.Code{
			agency.CodeRunNotFound, agency.CodeRunAmbiguous, agency.CodeInvalidState,
			agency.CodeBadRef, agency.CodeEmptyRepo, agency.CodeNotGitRepo, agency.CodeInvalidPath,
			agency.CodeUncommitted, agency.CodeSourceMoved, agency.CodeNothingToLand, agency.CodeTargetMoved, agency.CodeIntegrity,
		},
		Example: `{"change": "hold", "runs": ["fix-login"]}`,
	}
	PauseQueue = Operation[PauseQueueRequest, QueueResponse]{
		Name: "queue.pause", Kind: Acts,
		Help:    "Pause or resume a landing queue.",
		Errors:  []agency.Code{agency.CodeNotGitRepo, agency.CodeInvalidPath, agency.CodeInvalidState},
		Example: `{"dir": "/home/me/project", "into": "main"}`,
	}
)
