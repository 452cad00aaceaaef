package schedule

import (
	"time"

	"agency"
)

// ActionKind is the kind of an action.
type ActionKind string

// The kinds of actions. Those of the first group take long; their intent is recorded before they
// begin.
const (
	ActStart ActionKind = "start" // make the run of an agent and start it
	ActAgain ActionKind = "again" // start another attempt of its run
	ActStop  ActionKind = "stop"  // end the live attempt of its run
	// ActMeasure measures an Activity, which is not recorded. It is requested again until the state
	// has one.
	ActMeasure ActionKind = "measure"
	// ActLand lands the work of a complete agent. It is applied when it is done, with the Landing;
	// until then it is requested again, also by the next daemon, so it must find out what was done
	// before.
	ActLand ActionKind = "land"

	ActNote   ActionKind = "note"   // record what is known of its process
	ActRetry  ActionKind = "retry"  // an attempt ended, and another one follows
	ActEnd    ActionKind = "end"    // the agent is final
	ActSettle ActionKind = "settle" // the session is final
)

// Action is one thing to do for a session.
type Action struct {
	Kind  ActionKind
	Agent int          // its position in the plan; -1 for the session
	Run   agency.RunID // the run that the decision was about
	// Status is the agent's new status for ActEnd.
	Status    agency.AgentStatus
	Reason    string
	Attempt   int  // the attempt whose end is recorded
	ExitCode  *int // of that attempt
	Tried     bool // it was the agent's own fault
	Lost      bool // it was lost through no fault of the agent
	Waits     int  // how many starts in a row failed through no fault of the agent
	NotBefore time.Time
	PID       int    // 0 is none
	Pause     string // why this pauses the session; empty when it does not
	Landing   agency.AgentLanding

	ends  ends // of the attempts that were in the record at the decision
	stops bool // it begins a new agent, which no session does after a failure
}

// ends is the record's knowledge of the attempts of an agent that ended.
type ends struct{ attempt, tries, losses, waits int }

func endsOf(a *agency.SessionAgent) ends { return ends{a.Attempt, a.Tries, a.Losses, a.Waits} }

// Apply writes an action into the record of its session and its agent, with its effects. It changes
// nothing and returns false when the record has changed meanwhile. run is a new id for ActStart.
func (x *Action) Apply(s *agency.Session, a *agency.SessionAgent, run agency.RunID, now time.Time) bool {
	if s.Status.Final() {
		return false
	}
	switch x.Kind {
	case ActSettle:
		return settle(s, now)
	case ActLand:
		return x.land(a)
	default:
	}
	if a.Run != x.Run || a.Status.Final() || a.Status == agency.AgentQueued && x.Kind != ActStart && x.Kind != ActEnd {
		return false
	}
	switch x.Kind {
	case ActStart, ActAgain:
		if s.Paused != "" || s.CancelAt != nil || x.stops && s.Counts.Failed > 0 {
			return false
		}
		return x.begin(a, run, now)
	case ActStop:
		if x.Attempt == 0 || x.Attempt <= a.Attempt || a.Stopping == x.Attempt {
			return false // it is in the record already
		}
		a.Stopping, a.StopReason = x.Attempt, x.Reason
		if !x.NotBefore.IsZero() {
			a.NotBefore = &x.NotBefore
		}
	case ActNote:
		if x.Attempt <= a.Attempt {
			return false
		}
		a.Error, a.NotBefore, a.Waits, a.PID = "", nil, 0, nil
		if x.PID != 0 {
			a.PID = &x.PID
		}
	case ActRetry:
		if x.ends != endsOf(a) {
			return false
		}
		x.note(a)
		a.Error, a.NotBefore, a.Waits = x.Reason, nil, x.Waits
		if !x.NotBefore.IsZero() {
			a.NotBefore = &x.NotBefore
		}
		if s.Paused == "" && s.CancelAt == nil {
			s.Paused = x.Pause
		}
	case ActEnd:
		x.note(a)
		a.Status, a.CompletedAt, a.Error, a.NotBefore = x.Status, &now, x.Reason, nil
		if x.Pause != "" && s.CancelAt == nil {
			s.Paused = x.Pause
		}
	case ActSettle, ActMeasure, ActLand:
		return false
	}
	return true
}

// settle ends a session whose agents have ended.
func settle(s *agency.Session, now time.Time) bool {
	if !s.Settle(now) {
		return false
	}
	s.Paused = ""
	return true
}

// land records how the work of an agent landed.
func (x *Action) land(a *agency.SessionAgent) bool {
	if a.Status != agency.AgentComplete || a.Run != x.Run || a.Landing.State != "" || x.Landing.State == "" {
		return false
	}
	a.Landing = x.Landing
	return true
}

// begin records the intent of an attempt. The error of the previous attempt stays until the new one
// is alive: a crash in between must not lose it.
func (x *Action) begin(a *agency.SessionAgent, run agency.RunID, now time.Time) bool {
	if x.Kind == ActStart {
		a.Run, a.Attempt, a.Stopping, a.StopReason = run, 0, 0, ""
	}
	if a.Status == agency.AgentQueued {
		a.Status, a.StartedAt = agency.AgentRunning, &now
	}
	a.NotBefore, a.ExitCode = nil, nil
	return true
}

// note records the end of an attempt.
func (x *Action) note(a *agency.SessionAgent) {
	a.PID, a.Attempt = nil, max(a.Attempt, x.Attempt)
	if x.ExitCode != nil {
		a.ExitCode = x.ExitCode
	}
	if x.Tried {
		a.Tries++
	}
	if x.Lost {
		a.Losses++
	}
}
