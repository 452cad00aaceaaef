package api

import "slices"

// inside are the operations that an agent in a sandbox can ask for. The policy decides for each what
// it may ask about.
var inside = []string{
	CreateRun.Name, ListRuns.Name, ShowRun.Name, ExplainRun.Name, ShowOutput.Name, DiffRun.Name, WaitRuns.Name,
	AnswerRun.Name, SendInput.Name, InterruptRun.Name, StopRun.Name, ResumeRun.Name, RemoveRun.Name, FlagRun.Name, UnflagRun.Name,
	ListAlerts.Name, AckAlerts.Name, SendMessage.Name, PollMessages.Name, AckMessages.Name, ListMessages.Name,
}

// InsideHint tells an agent in a sandbox what it can do there, and how to get the rest.
const InsideHint = "what does: agency run, ls, show, explain, logs, diff, wait, send, answer, interrupt, stop, resume, rm, flag, alerts, messages; " +
	"for more, ask the user: agency report needs-input --question ..."

// Inside reports whether an agent in a sandbox can ask for the operation with a name.
func Inside(name string) bool { return slices.Contains(inside, name) }
