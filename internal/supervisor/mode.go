package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agency"
)

// conversationTimeout bounds the wait for an agent that was started in another mode to report which
// conversation it continues. Some agents report that with the next message only. But in the mode
// protocol, an agent that waits for a message first reports whether it can continue: it gets
// replyTimeout for that, as much as its wrapper gives it.
const (
	conversationTimeout = 5 * time.Second
	replyTimeout        = 65 * time.Second
)

// checkMode refuses a mode that the run already has, or in which its agent would have no task.
func checkMode(r *agency.Run, req *ResumeRequest) error {
	mode, err := agency.ChooseMode(req.Mode, nil)
	if err != nil || mode == "" {
		return err
	}
	ref := r.Ref()
	switch {
	case req.Fresh:
		return agency.Errorf(agency.CodeUsage, "another mode continues the conversation, and a fresh start begins a new one").WithHint("drop one of the two")
	case mode == agency.ModeHeadless && req.Prompt == "":
		return agency.Errorf(agency.CodeUsage, "in the mode headless an agent works on a prompt and ends").
			WithHint("agency mode %s headless --prompt TEXT", ref)
	case !r.Attempt.State.Final() && mode == r.Attempt.Mode && req.Attempt == 0:
		return agency.Errorf(agency.CodeInvalidState, "%s is in the mode %s already", ref, mode).WithHint("agency attach %s", ref)
	default:
		return nil
	}
}

// staysInMode returns the error for a run that cannot have the mode of the request, from the error for
// a new run, whose hint names options that only a new run has.
func staysInMode(err error, r *agency.Run, req *ResumeRequest) error {
	e := agency.AsError(err)
	if req.Mode == "" || e.Code != agency.CodeSpecInvalid {
		return err
	}
	return agency.Errorf(e.Code, "%s stays in the mode %s: %s", r.Ref(), r.Attempt.Mode, e.Message).WithHint("for a new run: %s", e.Hint)
}

// checkIdle refuses another mode while the agent is not at rest, if the request has Idle.
func checkIdle(r *agency.Run, req *ResumeRequest) error {
	ref, mode, state := r.Ref(), req.Mode, &r.Attempt.AgentState
	invalid := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodeInvalidState, format, args...)
	}
	switch {
	case mode == "" || !req.Idle || r.Attempt.State.Final():
		return nil
	case len(state.Requests) > 0:
		return invalid("the agent of %s asks something, and would lose it", ref).WithHint("answer it first: agency show %s; or: agency mode %s %s --when now", ref, ref, mode)
	case state.Background > 0:
		return invalid("the agent of %s has %d tasks in the background, which would end", ref, state.Background).WithHint("agency mode %s %s --when now", ref, mode)
	case state.Turn == agency.TurnUnknown:
		return invalid("the agent of %s has not said whether it is at rest", ref).WithHint("agency mode %s %s --when now", ref, mode)
	case state.Turn != agency.TurnEnded:
		return invalid("the agent of %s is at work", ref).WithDetail("busy", true).WithHint("agency mode %s %s --when now", ref, mode)
	default:
		return nil
	}
}

// endAgent ends a live agent so that the next attempt can begin. With Idle, the agent must still be at
// rest in the record when the stop is recorded: a message may have come meanwhile.
func (s *Supervisor) endAgent(ctx context.Context, r *agency.Run, req *ResumeRequest) error {
	if req.Idle {
		s.Observer.ReadEvidence(ctx, r.ID)
	}
	var busy error
	_, err := s.stopRunIf(ctx, r.ID, r.Attempt.Number, forRestart, func(now *agency.Run) error {
		busy = checkIdle(now, req)
		return busy
	})
	if busy == nil && agency.IsCode(err, agency.CodeInvalidState) {
		return nil // it ended by itself meanwhile, and needs no stop
	}
	return err
}

// move is the change of a conversation from one mode to another.
type move struct {
	wanted string      // the conversation that the agent is to continue
	of     int         // the attempt that had it
	from   agency.Mode // the mode of the attempt before
	silent bool        // the agent waits for a message
}

// back returns the command that continues the conversation where it was.
func (m *move) back(r *agency.Run) string {
	if m.from == agency.ModeHeadless {
		return fmt.Sprintf("agency mode --attempt %d %s headless --prompt TEXT", m.of, r.Ref())
	}
	return fmt.Sprintf("agency mode --attempt %d %s %s", m.of, r.Ref(), m.from)
}

// awaitConversation waits until the agent of an attempt in another mode reports which conversation it
// continues, or is at rest. The error is E_CONVERSATION_LOST when it is not the wanted one.
func (s *Supervisor) awaitConversation(ctx context.Context, r *agency.Run, m *move) (*agency.Run, error) {
	number, limit := r.Attempt.Number, conversationTimeout
	said := func(s *agency.AgentState) bool {
		return s.Conversation != "" || s.Turn == agency.TurnEnded && !r.Attempt.HasTerminal()
	}
	if m.silent && r.Attempt.Mode == agency.ModeProtocol {
		limit = replyTimeout
		said = func(s *agency.AgentState) bool { return s.Turn != agency.TurnUnknown }
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	now, err := s.awaitRun(waiting, r.ID, func(a *agency.Attempt) bool {
		return a.Number != number || a.State.Final() || said(&a.AgentState)
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return r, err
	}
	switch a := &now.Attempt; {
	case a.Number != number:
		return now, nil
	case a.AgentState.Conversation != "" && a.AgentState.Conversation != m.wanted:
		return now, agency.Errorf(agency.CodeConversationLost, "the agent of %s began another conversation, %s, in place of %s", now.Ref(), a.AgentState.Conversation, m.wanted).
			WithHint("continue the one before: %s", m.back(now))
	case a.State == agency.Failed && a.ErrorCode == agency.CodeConversationLost:
		return now, agency.Errorf(agency.CodeConversationLost, "%s", a.Error).WithHint("continue it where it was: %s; what its agent wrote: agency logs %s", m.back(now), now.Ref())
	case a.State == agency.Killed:
		return now, agency.Errorf(agency.CodeInvalidState, "%s was stopped before its agent said that it continues", now.Ref()).WithHint("agency resume %s", now.Ref())
	case a.State.Final() && (!a.Headless || a.State != agency.Completed):
		return now, agency.Errorf(agency.CodeRunnerStartFailed, "the agent of %s ended at once: %s", now.Ref(), cmp.Or(a.Error, "exit 0")).WithHint("agency logs %s", now.Ref())
	default:
		return now, nil
	}
}

// awaitRun waits until done returns true for the newest attempt of a run. When ctx ends, it returns the
// run as it is, and the error of ctx.
func (s *Supervisor) awaitRun(ctx context.Context, id agency.RunID, done func(*agency.Attempt) bool) (*agency.Run, error) {
	for {
		changed := s.Records.Changed()
		r, err := s.Records.Run(context.WithoutCancel(ctx), id)
		if err != nil || done(&r.Attempt) {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
