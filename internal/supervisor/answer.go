package supervisor

import (
	"context"
	"slices"
	"strings"
	"time"

	"agency"
)

// How an answer is given.
const (
	answerWait  = 15 * time.Second // for the terminal to show the request, all steps of the answer, and the request to close
	answerEvery = 150 * time.Millisecond
	// answerAgain is when keys are pressed once more: an agent takes none in the moment after it drew a dialog.
	answerAgain = 1500 * time.Millisecond
	keysTimeout = 5 * time.Second
)

// AnswerRequest is a reply to what a run's agent waits for.
type AnswerRequest struct {
	Ref      string
	PromptID string // of what it answers; empty is whatever the agent waits for now
	Reply    agency.Reply
}

// Answered says what came of a reply. Confirmed means that the agent was seen to take it.
type Answered struct {
	PromptID  string
	Confirmed bool
}

// AnswerRun gives a reply to what a run's agent waits for: by the keys of the dialog that its terminal shows, or as a message
// to an agent that asks in its own words. It is E_INVALID_STATE when the agent waits for nothing, for something else than
// PromptID says, or its terminal does not show it; E_INPUT_REFUSED when the reply cannot be given to it.
func (s *Supervisor) AnswerRun(ctx context.Context, req AnswerRequest) (*agency.Run, Answered, error) {
	if err := req.Reply.Validate(); err != nil {
		return nil, Answered{}, err
	}
	r, err := s.Resolve(ctx, req.Ref)
	if err != nil {
		return nil, Answered{}, err
	}
	s.look(ctx, r.ID) // of some agents only the screen tells what they ask
	status := s.Derive(r)
	if req.PromptID == "" {
		req.PromptID = status.PromptID()
	}
	asked := s.request(r.ID, req.PromptID)
	switch now := status.PromptID(); {
	case r.Attempt.State != agency.Running:
		return nil, Answered{}, agency.Errorf(agency.CodeInvalidState, "%s is %s, so nobody would read the answer", r.Ref(), r.Attempt.State)
	case req.PromptID == "":
		return nil, Answered{}, agency.Errorf(agency.CodeInvalidState, "%s is %s and waits for no answer", r.Ref(), status.Label).
			WithHint("agency send %s TEXT", r.Ref())
	case asked == nil && now != req.PromptID, asked != nil && asked.Source == agency.FromTitle && asked.PromptID() != req.PromptID:
		// Who answers what a title told alone has not seen what it is about.
		return nil, Answered{}, promptChanged(r, req.PromptID, now)
	case asked == nil && req.Reply.Text == "":
		return nil, Answered{}, agency.Errorf(agency.CodeUsage, "%s asks in its own words, so the answer is a text", r.Ref()).
			WithHint("agency answer %s TEXT", r.Ref())
	case asked == nil:
		_, delivery, err := s.SendInput(ctx, string(r.ID), req.Reply.Text, req.PromptID)
		return r, Answered{PromptID: req.PromptID, Confirmed: delivery.Confirmed}, err
	}
	if err := fits(r, asked, req.Reply); err != nil {
		return nil, Answered{}, err
	}
	release, err := s.locks.lock(ctx, "answer "+string(r.ID))
	if err != nil {
		return nil, Answered{}, err
	}
	defer release()
	confirmed, err := s.press(ctx, r, asked, req.Reply)
	if err != nil {
		return nil, Answered{}, err
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), inputTimeout) // what was pressed is pressed
	defer cancel()
	_, err = s.Store.ChangeRun(recording, r.ID, func(*agency.Run) ([]agency.News, error) {
		return []agency.News{{Type: agency.InputDelivered, Data: map[string]any{"answers": req.PromptID, "confirmed": confirmed}}}, nil
	})
	return r, Answered{PromptID: req.PromptID, Confirmed: confirmed}, err
}

// fits refuses a reply that is none to what is asked.
func fits(r *agency.Run, asked *agency.Request, reply agency.Reply) error {
	switch {
	case asked.Kind == agency.AsksDialog:
		return agency.Errorf(agency.CodeInputRefused, "%s shows a dialog of its program that only a person may answer: %s", r.Ref(), asked.Text).
			WithHint("agency attach %s", r.Ref())
	case asked.Source == agency.FromTitle && asked.ID == "":
		return agency.Errorf(agency.CodeInputRefused, "%s asks for something in its terminal that agency cannot read", r.Ref()).
			WithHint("agency attach %s", r.Ref())
	case asked.Kind == agency.AsksPermission && reply.Decision == "":
		return agency.Errorf(agency.CodeUsage, "%s asks for leave, so the answer is allow or deny", r.Ref()).WithHint("agency answer %s deny", r.Ref())
	case asked.Kind == agency.AsksQuestion && reply.Decision == agency.Allow:
		return agency.Errorf(agency.CodeUsage, "%s asks a question, so the answer is a text, or deny to give none", r.Ref()).
			WithHint("agency answer %s TEXT", r.Ref())
	default:
		return nil
	}
}

// press presses the keys of a reply, one step after the other, each for what the terminal shows then, until the request is
// closed. It says whether that was seen. Once a key is pressed it goes on to the end, also when ctx ends: half an answer is none.
func (s *Supervisor) press(ctx context.Context, r *agency.Run, asked *agency.Request, reply agency.Reply) (confirmed bool, err error) {
	id := (&agency.Request{At: asked.At}).PromptID() // whatever source tells more of it meanwhile
	var pressed string                               // the keys of the last step
	var pressedAt time.Time
	acting, interrupted := context.WithoutCancel(ctx), ctx.Done()
	for deadline := time.Now().Add(answerWait); time.Now().Before(deadline); {
		screen, err := s.Tmux.CaptureStyled(acting, r.Session(), r.Attempt.Pane)
		// After the look: a dialog is drawn later than it is told of, so what was shown is what was asked.
		if asked = s.request(r.ID, id); asked == nil {
			if pressed == "" {
				return false, promptChanged(r, id, "")
			}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		keys, shown, err := s.Harness.Answer(r.Runner.Kind, lines, asked, reply)
		if err != nil {
			return false, err
		}
		if shown && s.showsOther(r, lines, asked, reply) {
			return false, agency.Errorf(agency.CodeInputRefused, "the terminal of %s shows a dialog that can be for more than one of its requests", r.Ref()).
				WithHint("agency attach %s", r.Ref())
		}
		if shown && keys != "" && (keys != pressed || time.Since(pressedAt) >= answerAgain) {
			if err := s.keys(acting, r, keys); err != nil {
				return false, err
			}
			pressed, pressedAt, interrupted = keys, time.Now(), nil
		}
		select {
		case <-time.After(answerEvery):
		case <-interrupted:
			return false, ctx.Err()
		}
	}
	if pressed == "" {
		return false, agency.Errorf(agency.CodeInvalidState, "the terminal of %s does not show what it asks: %s", r.Ref(), asked.Summary()).
			WithHint("agency attach %s", r.Ref())
	}
	return false, nil
}

// showsOther says that what a terminal shows may be another open request than the one that is asked.
func (s *Supervisor) showsOther(r *agency.Run, lines []string, asked *agency.Request, reply agency.Reply) bool {
	l, ok := s.liveCopy(r.ID)
	if !ok {
		return false
	}
	return slices.ContainsFunc(l.situation.Requests, func(other agency.Request) bool {
		if other.ID == asked.ID || other.Kind != asked.Kind || other.Text == asked.Text && other.Tool == asked.Tool {
			return false
		}
		_, shown, err := s.Harness.Answer(r.Runner.Kind, lines, &other, reply)
		return shown && err == nil
	})
}

func (s *Supervisor) keys(ctx context.Context, r *agency.Run, keys string) error {
	link := s.awaitLink(ctx, r.ID)
	if link == nil {
		return agency.Errorf(agency.CodeInvalidState, "the wrapper of %s is not connected", r.Ref()).WithHint("agency show %s", r.Ref())
	}
	// A wrapper of an older version does not know keys, and never answers.
	ctx, cancel := context.WithTimeoutCause(ctx, keysTimeout,
		agency.Errorf(agency.CodeInputRefused, "the wrapper of %s does not take keys", r.Ref()).WithHint("agency attach %s", r.Ref()))
	defer cancel()
	if err := link.Keys(ctx, keys); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return byName(err, r)
	}
	return nil
}

// request is the open request with a prompt id; nil when it is not open.
func (s *Supervisor) request(id agency.RunID, promptID string) *agency.Request {
	l, ok := s.liveCopy(id)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(l.situation.Requests, func(r agency.Request) bool { return r.Is(promptID) })
	if i < 0 {
		return nil
	}
	return &l.situation.Requests[i]
}

// promptChanged refuses an answer to something that is not asked any more.
func promptChanged(r *agency.Run, wanted, now string) error {
	err := agency.Errorf(agency.CodeInvalidState, "%s does not wait for %s any more", r.Ref(), wanted).WithHint("see what it waits for now: agency show %s", r.Ref())
	if now != "" {
		return err.WithDetail("prompt_id", now)
	}
	return err
}
