package scheduler

import (
	"context"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/schedule"
)

// settle ends a session whose agents are all final.
func (l *loop) settle(ctx context.Context, d *liveSession) error {
	id := d.Session.ID
	state, err := l.Store.ChangeSession(ctx, id, []string{}, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		x := schedule.Action{Kind: schedule.ActSettle, Agent: -1}
		if !x.Apply(s, nil, "", l.Now()) {
			return nil, nil
		}
		return []agency.EventDraft{s.EventDraft(agency.SessionSettled)}, nil
	})
	if err != nil {
		return err
	}
	if !state.Status.Final() {
		return l.load(ctx, id) // the record has changed
	}
	killpoint.At("scheduler.settled")
	l.drop(id)
	if err := l.removeEnv(id); err != nil {
		l.complain("remove the environment of a session", err, "session", id)
	}
	return nil
}
