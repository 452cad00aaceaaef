package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"agency"
	"agency/internal/duration"
	"agency/internal/plain"
)

// Everything that agency sends to an agent in the agent's own protocol goes through this file and
// through say. Nothing here looks at a terminal or presses a key.

type sayerKey struct{}

// By returns a context whose messages to an agent come from the given sender: the user, or a run.
func By(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, sayerKey{}, who)
}

// sayer returns the sender of a message to an agent: agency itself, unless By has set another.
func sayer(ctx context.Context) string {
	if who, ok := ctx.Value(sayerKey{}).(string); ok {
		return who
	}
	return "agency"
}

// say sends something to a run's agent, and records it. Without an answer from the wrapper the agent may
// have got it, now or from the next wrapper: agency.MayHaveTyped recognizes such errors.
func (in *Input) say(ctx context.Context, r *agency.Run, s agency.Saying) (agency.Delivery, error) {
	ctx = context.WithoutCancel(ctx) // a client that goes away must not keep it from being recorded
	link, err := in.live.mustLink(ctx, r)
	if err != nil {
		return agency.Delivery{}, err
	}
	saying, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	at := in.now()
	delivery, err := link.Say(saying, s)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return delivery, agency.TypedPerhaps(agency.Errorf(agency.CodeInvalidState, "the wrapper of %s went away before it answered, and the agent may have got it", r.Ref()).
			WithHint("look before you send it again: agency logs %s", r.Ref()))
	case errors.Is(err, context.DeadlineExceeded):
		return delivery, agency.TypedPerhaps(agency.Errorf(agency.CodeInvalidState, "the wrapper of %s did not answer within %s, and the agent may have got it", r.Ref(), duration.Text(inputTimeout)).
			WithHint("look before you send it again: agency logs %s", r.Ref()))
	case err != nil:
		err = byName(err, r)
		if e := agency.AsError(err); e.Hint == "" { // the wrapper knows no name of the run
			err = e.WithHint("what it asks: agency show %s; what was said: agency logs %s", r.Ref(), r.Ref())
		}
		return delivery, err
	}
	recording, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	number := r.Attempt.Number
	_, err = in.store.fact(recording, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Attempt.Number == number && s.Kind == agency.SaysMessage {
			r.Attempt.InputAt = &at
		}
		return []agency.EventDraft{{Type: agency.InputDelivered, Data: s.Said(delivery.Confirmed)}}, nil
	})
	in.observer.ReadEvidence(ctx, r.ID) // what the agent acknowledged is there
	return delivery, err
}

// answerSpoken answers a request by its id, in the agent's own protocol.
func (in *Input) answerSpoken(ctx context.Context, r *agency.Run, req AnswerRequest) (*agency.Run, Answered, error) {
	if err := checkListens(r, "no agent would read the answer"); err != nil {
		return nil, Answered{}, err
	}
	in.observer.ReadEvidence(ctx, r.ID)
	open := in.open(r.ID)
	status := in.observer.Derive(r)
	switch {
	case req.PromptID == "" && len(open) > 1:
		return nil, Answered{}, agency.Errorf(agency.CodeUsage, "%s asks %d things at once: %s", r.Ref(), len(open), listed(open)).
			WithHint("agency answer %s --prompt-id %s allow", r.Ref(), open[0].ID).WithDetail("prompt_ids", promptIDs(open))
	case req.PromptID == "" && len(open) == 1:
		req.PromptID = open[0].PromptID()
	case req.PromptID == "":
		req.PromptID = status.PromptID()
	}
	asked := in.request(r.ID, req.PromptID)
	switch {
	case asked == nil && req.PromptID != "" && req.PromptID == status.PromptID() && req.Reply.Text != "" && req.Reply.Decision == "":
		// It asks in its own words, by its status file.
		_, delivery, err := in.Send(ctx, string(r.ID), req.Reply.Text, "")
		return r, Answered{PromptID: req.PromptID, Confirmed: delivery.Confirmed}, err
	case asked == nil && req.PromptID == "":
		return nil, Answered{}, agency.Errorf(agency.CodeInvalidState, "%s is %s and waits for no answer", r.Ref(), status.Label).
			WithHint("see what it does: agency show %s; what it said: agency logs %s", r.Ref(), r.Ref())
	case asked == nil && req.PromptID == status.PromptID():
		return nil, Answered{}, agency.Errorf(agency.CodeUsage, "%s asks in its own words, so the answer is a text", r.Ref()).WithHint("agency answer %s TEXT", r.Ref())
	case asked != nil:
		if err := fits(r, asked, req.Reply); err != nil {
			return nil, Answered{}, err
		}
	}
	id := req.PromptID
	if asked != nil {
		id = asked.ID
	} else if i := strings.LastIndex(id, "@"); i >= 0 {
		id = id[:i] // the wrapper knows who answered a request that is no longer open
	}
	if again := in.request(r.ID, id); asked == nil && again != nil && id != "" {
		return nil, Answered{}, promptChanged(r, req.PromptID, again.PromptID()) // the agent used its id again
	}
	delivery, err := in.say(ctx, r, agency.Saying{Kind: agency.SaysAnswer, ID: id, Decision: req.Reply.Decision, Answer: req.Reply.Text, By: sayer(ctx)})
	if err != nil {
		return nil, Answered{}, err
	}
	return r, Answered{PromptID: req.PromptID, Confirmed: delivery.Confirmed}, nil
}

// Interrupt ends what a run's agent does, without ending the agent.
func (in *Input) Interrupt(ctx context.Context, ref string) (*agency.Run, agency.Delivery, error) {
	r, err := in.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Delivery{}, err
	}
	if err := checkListens(r, "there is nothing to interrupt"); err != nil {
		return nil, agency.Delivery{}, err
	}
	if r.Attempt.Mode != agency.ModeProtocol {
		return nil, agency.Delivery{}, agency.Errorf(agency.CodeInvalidState, "%s is in the mode %s, in which agency does not interrupt", r.Ref(), r.Attempt.Mode).
			WithHint("press the key of the agent: agency attach %s; or end it: agency stop %s", r.Ref(), r.Ref())
	}
	delivery, err := in.say(ctx, r, agency.Saying{Kind: agency.SaysInterrupt, ID: in.random.uuid(), By: sayer(ctx)})
	return r, delivery, err
}

// checkListens returns an error if the agent of a run cannot get a message. so is what follows from
// that, in words.
func checkListens(r *agency.Run, so string) error {
	switch {
	case r.RemovedAt != nil:
		return agency.Errorf(agency.CodeInvalidState, "%s is removed, so %s", r.Ref(), so).WithHint("start a new run: agency run TASK")
	case r.Attempt.State != agency.Running:
		return agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so %s", r.Ref(), so).
			WithHint("give it a new task: agency resume %s --prompt TEXT", r.Ref())
	default:
		return nil
	}
}

// open returns the open requests of a run.
func (in *Input) open(id agency.RunID) []agency.Request {
	l, ok := in.observer.Seen(id)
	if !ok {
		return nil
	}
	return l.AgentState.Requests
}

func promptIDs(requests []agency.Request) []string {
	ids := make([]string, 0, len(requests))
	for i := range requests {
		ids = append(ids, requests[i].PromptID())
	}
	return ids
}

// listed returns requests in a few words, each with its id.
func listed(requests []agency.Request) string {
	words := make([]string, 0, len(requests))
	for i := range requests {
		words = append(words, fmt.Sprintf("%s (%s)", plain.Clip(plain.Visible(requests[i].Summary())), requests[i].ID))
	}
	return strings.Join(words, "; ")
}
