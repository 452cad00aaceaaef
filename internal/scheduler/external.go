package scheduler

import (
	"math"
	"time"

	"agency"
	"agency/internal/plain"
)

// start records that the agent's program runs. If the agent runs already, the program replaces the
// previous one: only its pid changes.
func start(a *agency.SessionAgent, pid *int, at time.Time) error {
	if pid != nil && !isPID(*pid) {
		return agency.Errorf(agency.CodeUsage, "the pid of agent %s is %d", a.ID, *pid).WithHint("the number of a process is between 1 and %d", math.MaxInt32)
	}
	if a.Status != agency.AgentRunning {
		if err := become(a, agency.AgentRunning); err != nil {
			return err
		}
		a.StartedAt = wholeSecond(at)
	}
	a.PID = pid
	return nil
}

// complete records that the agent has done its work.
func complete(a *agency.SessionAgent, exitCode int, at time.Time) error {
	if err := become(a, agency.AgentComplete); err != nil {
		return err
	}
	a.CompletedAt, a.ExitCode, a.PID = wholeSecond(at), &exitCode, nil
	return nil
}

// fail records that the agent failed, and why.
func fail(a *agency.SessionAgent, failure string, exitCode int, at time.Time) error {
	if len(failure) > agency.ExternalTextLimit {
		return tooLong(a.ID, "error has", agency.ExternalTextLimit)
	}
	if err := become(a, agency.AgentFailed); err != nil {
		return err
	}
	a.CompletedAt, a.ExitCode, a.PID, a.Error = wholeSecond(at), &exitCode, nil, failure
	return nil
}

// cancel records that the agent was given up; why may be empty.
func cancel(a *agency.SessionAgent, why string, at time.Time) error {
	if len(why) > agency.ExternalTextLimit {
		return tooLong(a.ID, "error has", agency.ExternalTextLimit)
	}
	if err := become(a, agency.AgentCancelled); err != nil {
		return err
	}
	a.CompletedAt, a.PID, a.Error = wholeSecond(at), nil, why
	return nil
}

func become(a *agency.SessionAgent, next agency.AgentStatus) error {
	if agency.NextAgent(a.Status, next) == nil {
		a.Status = next
		return nil
	}
	e := agency.Errorf(agency.CodeInvalidState, "agent %s is %s and cannot become %s", a.ID, a.Status, next)
	if a.Status == agency.AgentQueued {
		return e.WithHint("it has to start first: agency session update %s --agent %s start", a.Session, a.ID)
	}
	return e.WithHint("agency session show %s", a.Session)
}

// isPID reports whether a number can be the pid of a process on any system.
func isPID(n int) bool { return n > 0 && n <= math.MaxInt32 }

// wholeSecond returns a time in the precision of the status files.
func wholeSecond(at time.Time) *time.Time {
	at = at.UTC().Truncate(time.Second)
	return &at
}

func tooLong(agent, what string, most int) error {
	return agency.Errorf(agency.CodeUsage, "agent %s: its %s more than %d bytes", agent, what, most).
		WithHint("say less here and put the rest into its log file")
}

// checkLine refuses a text that is not one line of a few hundred characters at most.
func checkLine(what, text string) error {
	if problem := plain.LineProblem(text); problem != "" {
		return agency.Errorf(agency.CodeUsage, "the %s %s", what, problem).WithHint("it is one line of at most %d characters", plain.LongestLine)
	}
	return nil
}
