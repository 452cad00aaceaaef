package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agency"
)

// Times of an answer.
const (
	answerWait  = 15 * time.Second // bounds the whole answer: the request is shown, the keys are pressed, the request closes
	answerEvery = 150 * time.Millisecond
	// answerAgain is how long to wait before pressing the same keys again: an agent ignores keys
	// right after it drew a dialog.
	answerAgain = 1500 * time.Millisecond
)

// AnswerRequest is a reply to what a run's agent waits for.
type AnswerRequest struct {
	Ref      string
	PromptID string // of the request to answer; empty is whatever the agent waits for now
	Reply    agency.Reply
}

// Answered is the outcome of a reply. Confirmed reports whether the agent was seen to take it.
type Answered struct {
	PromptID  string
	Confirmed bool
}

// Answer replies to what a run's agent waits for: with the keys of the dialog that its terminal
// shows, or with a message when the agent asks in plain text. The error is E_INVALID_STATE when the
// agent waits for nothing or for something other than PromptID, or when its terminal does not show
// the request; E_INPUT_REFUSED when the reply cannot be given to it.
func (in *Input) Answer(ctx context.Context, req AnswerRequest) (*agency.Run, Answered, error) {
	if err := req.Reply.Validate(); err != nil {
		return nil, Answered{}, err
	}
	r, err := in.store.Resolve(ctx, req.Ref)
	if err != nil {
		return nil, Answered{}, err
	}
	if r.Attempt.Mode == agency.ModeProtocol {
		return in.answerSpoken(ctx, r, req)
	}
	in.observer.Look(ctx, r.ID) // only the screen shows what some agents ask
	in.observer.LookAtDialog(ctx, r.ID)
	status := in.observer.Derive(r)
	if req.PromptID == "" {
		req.PromptID = status.PromptID()
	}
	asked := in.request(r.ID, req.PromptID)
	if err := checkListens(r, "no agent would read the answer"); err != nil {
		return nil, Answered{}, err
	}
	switch now := status.PromptID(); {
	case req.PromptID == "" && status.Label == agency.NeedsAttention:
		return nil, Answered{}, agency.Errorf(agency.CodeInvalidState, "%s is flagged, so agency does not know what it waits for: %s", r.Ref(), status.Summary).
			WithHint("see what it does: agency show %s; then: agency unflag %s", r.Ref(), r.Ref())
	case req.PromptID == "":
		return nil, Answered{}, agency.Errorf(agency.CodeInvalidState, "%s is %s and waits for no answer", r.Ref(), status.Label).
			WithHint("see what it does: agency show %s; look at its terminal: agency attach %s", r.Ref(), r.Ref())
	case asked == nil && now != req.PromptID, asked != nil && asked.Source == agency.FromTitle && asked.PromptID() != req.PromptID:
		// A title alone does not show the client what the agent asks.
		return nil, Answered{}, promptChanged(r, req.PromptID, now)
	case asked == nil && (req.Reply.Text == "" || req.Reply.Decision != ""):
		return nil, Answered{}, agency.Errorf(agency.CodeUsage, "%s asks in its own words, so the answer is a text", r.Ref()).
			WithHint("agency answer %s TEXT", r.Ref())
	case asked == nil:
		_, delivery, err := in.Send(ctx, string(r.ID), req.Reply.Text, req.PromptID)
		return r, Answered{PromptID: req.PromptID, Confirmed: delivery.Confirmed}, err
	}
	if err := fits(r, asked, req.Reply); err != nil {
		return nil, Answered{}, err
	}
	release, err := in.locks.Lock(ctx, string(r.ID))
	if err != nil {
		return nil, Answered{}, err
	}
	defer release()
	confirmed, err := in.press(ctx, r, asked, req.Reply)
	if err != nil {
		return nil, Answered{}, err
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), inputTimeout) // the keys are pressed already
	defer cancel()
	_, err = in.store.fact(recording, r.ID, func(*agency.Run) ([]agency.EventDraft, error) {
		return []agency.EventDraft{{Type: agency.InputDelivered, Data: map[string]any{"answers": req.PromptID, "confirmed": confirmed}}}, nil
	})
	return r, Answered{PromptID: req.PromptID, Confirmed: confirmed}, err
}

// fits refuses a reply that does not fit the request.
func fits(r *agency.Run, asked *agency.Request, reply agency.Reply) error {
	switch {
	case asked.Kind == agency.AsksDialog:
		return agency.Errorf(agency.CodeInputRefused, "%s shows a dialog of its program that only the user may answer: %s", r.Ref(), asked.Text).
			WithHint("agency attach %s", r.Ref())
	case asked.Source == agency.FromTitle && asked.ID == "":
		return agency.Errorf(agency.CodeInputRefused, "%s asks for something in its terminal that agency cannot read", r.Ref()).
			WithHint("agency attach %s", r.Ref())
	case reply.Reason() != "" && r.Attempt.Mode != agency.ModeProtocol:
		return agency.Errorf(agency.CodeInputRefused, "the dialog in the terminal of %s has no place for a reason", r.Ref()).
			WithHint("agency answer %s deny; then, when it waits: agency send %s TEXT", r.Ref(), r.Ref())
	case asked.Kind == agency.AsksPermission && reply.Decision == "":
		return agency.Errorf(agency.CodeUsage, "%s asks for permission, so the answer is allow or deny", r.Ref()).WithHint("agency answer %s deny", r.Ref())
	case asked.Kind == agency.AsksQuestion && reply.Decision == agency.Allow:
		return agency.Errorf(agency.CodeUsage, "%s asks a question, so the answer is a text, or deny to give none", r.Ref()).
			WithHint("agency answer %s TEXT", r.Ref())
	default:
		return nil
	}
}

// press presses the keys of a reply step by step, each for what the terminal shows then, until the
// request is closed. confirmed reports whether the agent closed it. After the first key it continues
// even when ctx ends, because half an answer is useless.
func (in *Input) press(ctx context.Context, r *agency.Run, asked *agency.Request, reply agency.Reply) (confirmed bool, err error) {
	id := asked.PromptID() // of a request without an id, it also names the same request of a source that knows more
	var pressed string     // the keys of the last step
	var pressedAt time.Time
	acting, interrupted := context.WithoutCancel(ctx), ctx.Done()
	for deadline := time.Now().Add(answerWait); time.Now().Before(deadline); {
		keys, shown, err := in.nextKeys(acting, r, id, reply)
		switch {
		case errors.Is(err, errClosed) && pressed == "":
			return false, promptChanged(r, id, "")
		case errors.Is(err, errClosed):
			l, ok := in.observer.Seen(r.ID)
			return ok && l.Attempt == r.Attempt.Number, nil // the request is also gone when the agent has ended
		case err != nil:
			return false, err
		}
		if shown && keys != "" && (keys != pressed || time.Since(pressedAt) >= answerAgain) {
			in.observer.LookAtDialog(acting, r.ID) // record that the dialog was shown before its keys are pressed
			typed, err := in.pressFor(acting, r, id, reply, keys)
			if err != nil {
				return false, err
			}
			if typed {
				pressed, pressedAt, interrupted = keys, time.Now(), nil
			}
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

// errClosed means that a request is no longer open.
var errClosed = errors.New("the request is closed")

// nextKeys looks at a run's terminal and returns the next keys that answer a request. shown is
// false while the terminal does not show the request.
func (in *Input) nextKeys(ctx context.Context, r *agency.Run, id string, reply agency.Reply) (keys string, shown bool, err error) {
	screen, err := in.tmux.CaptureStyled(ctx, r.Session(), r.Attempt.Pane)
	// After the capture: a dialog is drawn after its request is reported, so the capture shows this
	// request.
	asked := in.request(r.ID, id)
	if asked == nil {
		return "", false, errClosed
	}
	if err != nil {
		return "", false, err
	}
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	keys, shown, err = in.harness.Answer(r.Runner.Kind, lines, asked, reply)
	if err == nil && shown && in.showsOther(r, lines, asked) {
		return "", false, agency.Errorf(agency.CodeInputRefused, "the terminal of %s shows a dialog that can be for more than one of its requests", r.Ref()).
			WithHint("agency attach %s", r.Ref())
	}
	return keys, shown, err
}

// pressFor presses keys for a request if, at the last moment, the terminal still shows it and still
// needs these keys. typed reports whether it pressed them.
func (in *Input) pressFor(ctx context.Context, r *agency.Run, id string, reply agency.Reply, keys string) (typed bool, err error) {
	changed := false
	err = in.typeKeys(ctx, r, keys, func(ctx context.Context) error {
		now, shown, err := in.nextKeys(ctx, r, id, reply)
		if changed = err != nil || !shown || now != keys; changed {
			return agency.Errorf(agency.CodeInputRefused, "the terminal of %s no longer shows this request", r.Ref())
		}
		return nil
	})
	if changed {
		return false, nil // the next look decides what to press
	}
	return err == nil, err
}

// showsOther reports whether the terminal shows, or may show, another open request than asked.
func (in *Input) showsOther(r *agency.Run, lines []string, asked *agency.Request) bool {
	l, ok := in.observer.Seen(r.ID)
	if !ok || len(l.AgentState.Requests) < 2 {
		return false
	}
	i := in.harness.Shown(r.Runner.Kind, lines, l.AgentState.Requests)
	return i < 0 || !l.AgentState.Requests[i].Same(asked)
}

// request returns the open request with a prompt id; nil when it is not open.
func (in *Input) request(id agency.RunID, promptID string) *agency.Request {
	l, ok := in.observer.Seen(id)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(l.AgentState.Requests, func(r agency.Request) bool { return r.Is(promptID) || promptID != "" && r.ID == promptID })
	if i < 0 {
		return nil
	}
	return &l.AgentState.Requests[i]
}

// promptChanged is the error for an answer to a request that is no longer open.
func promptChanged(r *agency.Run, wanted, now string) error {
	err := agency.Errorf(agency.CodeInvalidState, "%s no longer waits for %s", r.Ref(), wanted).WithHint("see what it waits for now: agency show %s", r.Ref())
	if now != "" {
		return err.WithDetail("prompt_id", now)
	}
	return err
}
