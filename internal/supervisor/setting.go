package supervisor

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// settingLimit is the longest value of a setting, in bytes.
const settingLimit = 200

// Settings returns what the agent of a run uses and offers, and the messages that it has not begun
// with. The lists are never nil.
func (q *Query) Settings(r *agency.Run) (agency.Settings, []agency.QueuedMessage) {
	state := &r.Attempt.AgentState
	if seen, ok := q.observer.Seen(r.ID); ok && seen.Attempt == r.Attempt.Number {
		state = seen.AgentState
	}
	s, queue := state.Settings, []agency.QueuedMessage{}
	s.Models, s.PermissionModes = append([]string{}, s.Models...), append([]string{}, s.PermissionModes...)
	if !r.Attempt.State.Final() {
		queue = append(queue, state.Queue...)
	}
	return s, queue
}

// Set has the agent of a run use another model or permission mode, and returns the one that it uses
// then.
func (in *Input) Set(ctx context.Context, ref string, setting agency.Setting, value string) (*agency.Run, string, agency.Delivery, error) {
	none := agency.Delivery{}
	if setting != agency.SettingModel && setting != agency.SettingPermissionMode {
		return nil, "", none, agency.Errorf(agency.CodeUsage, "the setting %q does not exist", plain.Clip(string(setting))).
			WithHint("%s or %s", agency.SettingModel, agency.SettingPermissionMode)
	}
	if value == "" || len(value) > settingLimit || plain.OneLine(value) != value {
		return nil, "", none, agency.Errorf(agency.CodeUsage, "%q is not the name of a %s", plain.Clip(value), setting.Words()).WithHint("what its agent offers: agency show RUN --json")
	}
	r, err := in.spoken(ctx, ref, "the "+setting.Words()+" is changed in the agent itself: agency attach %s, and there /"+map[agency.Setting]string{agency.SettingModel: "model", agency.SettingPermissionMode: "permissions"}[setting])
	if err != nil {
		return nil, "", none, err
	}
	delivery, err := in.say(ctx, r, agency.Saying{Kind: agency.SaysSetting, ID: in.random.uuid(), Setting: setting, Text: value, By: sayer(ctx)})
	if err != nil {
		return nil, "", none, err
	}
	now, _ := in.seen(r).Of(setting)
	return r, now, delivery, nil
}

// TakeBack takes back a message that the agent of a run has not begun with: the one whose id begins
// with the given one, or the only one.
func (in *Input) TakeBack(ctx context.Context, ref, id string) (*agency.Run, agency.QueuedMessage, agency.Delivery, error) {
	none := agency.QueuedMessage{}
	r, err := in.spoken(ctx, ref, "what is in its input box is deleted there: agency attach %s")
	if err != nil {
		return nil, none, agency.Delivery{}, err
	}
	in.observer.ReadEvidence(ctx, r.ID)
	queue := slices.Clone(in.seen(r).Queue)
	queue = slices.DeleteFunc(queue, func(m agency.QueuedMessage) bool { return !strings.HasPrefix(m.ID, id) })
	switch {
	case len(queue) == 0 && id != "":
		return nil, none, agency.Delivery{}, agency.Errorf(agency.CodeInvalidState, "%s has no message %s with which it has not begun", r.Ref(), plain.Clip(id)).WithHint("agency show %s", r.Ref())
	case len(queue) == 0:
		return nil, none, agency.Delivery{}, agency.Errorf(agency.CodeInvalidState, "%s has no message with which it has not begun", r.Ref()).WithHint("agency interrupt %s ends what it does", r.Ref())
	case len(queue) > 1:
		return nil, none, agency.Delivery{}, agency.Errorf(agency.CodeUsage, "%s has %d messages with which it has not begun: %s", r.Ref(), len(queue), waiting(queue)).
			WithHint("agency unsend %s %s", r.Ref(), queue[0].ID)
	}
	delivery, err := in.say(ctx, r, agency.Saying{Kind: agency.SaysTakeBack, ID: in.random.uuid(), Text: queue[0].ID, By: sayer(ctx)})
	return r, queue[0], delivery, err
}

// spoken returns a run if agency speaks with its agent in the agent's own protocol. instead is the hint
// for a run with a terminal, and names what the user does there.
func (in *Input) spoken(ctx context.Context, ref, instead string) (*agency.Run, error) {
	r, err := in.store.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := checkListens(r, "there is nothing to change"); err != nil {
		return nil, err
	}
	if r.Attempt.Mode != agency.ModeProtocol {
		e := agency.Errorf(agency.CodeInvalidState, "%s is in the mode %s, in which agency does not speak the protocol of its agent", r.Ref(), r.Attempt.Mode)
		if r.Attempt.HasTerminal() {
			return nil, e.WithHint(instead+"; or: agency mode %s protocol", r.Ref(), r.Ref())
		}
		return nil, e.WithHint("agency mode %s protocol", r.Ref())
	}
	return r, nil
}

// seen returns what is known about the agent of a run.
func (in *Input) seen(r *agency.Run) *agency.AgentState {
	if l, ok := in.observer.Seen(r.ID); ok && l.Attempt == r.Attempt.Number {
		return l.AgentState
	}
	return &r.Attempt.AgentState
}

// waiting returns messages in a few words, each with its id.
func waiting(queue []agency.QueuedMessage) string {
	words := make([]string, 0, len(queue))
	for _, m := range queue {
		words = append(words, m.ID+" ("+plain.Clip(plain.Visible(m.Text))+")")
	}
	return strings.Join(words, "; ")
}
