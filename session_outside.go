package agency

import (
	"math"
	"time"
)

// Limits of what an outside executor may say.
const (
	OutsideTextLimit  = 16 << 10 // bytes of one text
	OutsideExtraLimit = 64 << 10 // bytes of the members of an agent that agency does not know
)

// Start takes down that the agent's program runs. One that runs already is a program in the place of the one before: only its pid
// changes.
func (a *SessionAgent) Start(pid *int, at time.Time) error {
	if pid != nil && !isPID(*pid) {
		return Errorf(CodeUsage, "the pid of agent %s is %d", a.ID, *pid).WithHint("the number of a process is between 1 and %d", math.MaxInt32)
	}
	if a.Status != AgentRunning {
		if err := a.become(AgentRunning); err != nil {
			return err
		}
		a.StartedAt = wholeSecond(at)
	}
	a.PID = pid
	return nil
}

// Complete takes down that the agent has done its work.
func (a *SessionAgent) Complete(exitCode int, at time.Time) error {
	if err := a.become(AgentComplete); err != nil {
		return err
	}
	a.CompletedAt, a.ExitCode, a.PID = wholeSecond(at), &exitCode, nil
	return nil
}

// Fail takes down that the agent failed, and why.
func (a *SessionAgent) Fail(failure string, exitCode int, at time.Time) error {
	if len(failure) > OutsideTextLimit {
		return tooLong(a.ID, "error has", OutsideTextLimit)
	}
	if err := a.become(AgentFailed); err != nil {
		return err
	}
	a.CompletedAt, a.ExitCode, a.PID, a.Error = wholeSecond(at), &exitCode, nil, failure
	return nil
}

// Cancel takes down that somebody gave the agent up; why may be empty.
func (a *SessionAgent) Cancel(why string, at time.Time) error {
	if len(why) > OutsideTextLimit {
		return tooLong(a.ID, "error has", OutsideTextLimit)
	}
	if err := a.become(AgentCancelled); err != nil {
		return err
	}
	a.CompletedAt, a.PID, a.Error = wholeSecond(at), nil, why
	return nil
}

func (a *SessionAgent) become(next AgentStatus) error {
	if NextAgent(a.Status, next) == nil {
		a.Status = next
		return nil
	}
	e := Errorf(CodeInvalidState, "agent %s is %s and cannot become %s", a.ID, a.Status, next)
	if a.Status == AgentQueued {
		return e.WithHint("it has to start first: agency session update %s --agent %s start", a.Session, a.ID)
	}
	return e.WithHint("agency session show %s", a.Session)
}

// isPID says that a number can be that of a process on some system.
func isPID(n int) bool { return n > 0 && n <= math.MaxInt32 }

// wholeSecond is a time as the status files have it.
func wholeSecond(at time.Time) *time.Time {
	at = at.UTC().Truncate(time.Second)
	return &at
}

func tooLong(agent, what string, most int) error {
	return Errorf(CodeUsage, "agent %s: its %s more than %d bytes", agent, what, most).
		WithHint("say less here and put the rest into its log file")
}

// CheckLine refuses a text that is not one line of at most some hundred characters.
func CheckLine(what, text string) error {
	if problem := LineProblem(text); problem != "" {
		return Errorf(CodeUsage, "the %s %s", what, problem).WithHint("it is one line of at most %d characters", LongestLine)
	}
	return nil
}
