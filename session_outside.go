package agency

import (
	"math"
	"slices"
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

// ParseFileAgent reads one agent of a status file. Only id is needed. What cannot be told by the fields goes into Extra and
// Absent, so that File says the same again. A value that no agent can have is E_USAGE.
func ParseFileAgent(o FileObject) (SessionAgent, error) {
	a := SessionAgent{Status: AgentQueued}
	p := objectParser{object: o}
	p.text("id", &a.ID)
	if p.err == nil {
		p.err = CheckAgentID(a.ID)
	}
	p.text("name", &a.Name)
	p.text("prompt_path", &a.PromptPath)
	p.text("log_file", &a.LogFile)
	p.text("model", &a.Model)
	p.text("error", &a.Error)
	status := string(a.Status)
	p.text("status", &status)
	a.Status = AgentStatus(status)
	p.whole("wave", func(n int) { a.Wave = n })
	p.time("started_at", &a.StartedAt)
	p.time("completed_at", &a.CompletedAt)
	p.whole("exit_code", func(n int) { a.ExitCode = &n })
	p.whole("pid", func(n int) { a.PID = &n })
	if !slices.Contains(AgentStatuses(), a.Status) {
		p.fail("status", "is none of queued, running, complete, failed, cancelled")
	}
	if a.PID != nil && !isPID(*a.PID) {
		p.fail("pid", "is no number of a process")
	}
	if a.Wave < 0 {
		p.fail("wave", "is less than 0")
	}
	if p.err != nil {
		name := a.ID
		if name == "" {
			name = "without an id"
		}
		return a, Errorf(CodeUsage, "agent %s: %w", name, p.err).WithHint(`an agent is an object as in status.json, such as {"id": "001", "name": "fix-auth"}`)
	}
	for _, name := range agentMembers {
		if o.Get(name) == nil {
			a.Absent = append(a.Absent, name)
		}
	}
	var extra FileObject
	said := a.File()
	for _, m := range o {
		if value := said.Get(m.Name); value == nil || empty(value) && string(m.Value) != string(value) {
			extra = append(extra, m)
		}
	}
	if extra != nil {
		if a.Extra = extra.compact(); len(a.Extra) > OutsideExtraLimit {
			return a, tooLong(a.ID, "unknown members have", OutsideExtraLimit)
		}
	}
	return a, nil
}

// StaysAbsent says that a member that an executor left out is left out of the status file, too. The others say how the agent
// stands, and are always there.
func StaysAbsent(member string) bool {
	return member == "name" || member == "prompt_path" || member == "wave" || member == "model"
}

// CheckLine refuses a text that is not one line of at most some hundred characters.
func CheckLine(what, text string) error {
	if problem := lineProblem(text); problem != "" {
		return Errorf(CodeUsage, "the %s %s", what, problem).WithHint("it is one line of at most %d characters", longestLine)
	}
	return nil
}
