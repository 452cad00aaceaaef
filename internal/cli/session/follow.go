package session

import (
	"context"
	"encoding/json"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// begin returns the session that the arguments name, and the number of an event. The session
// includes the changes up to that event.
func begin(ctx context.Context, d *command.Deps, client *api.Client, args []string) (s api.ShowSessionResponse, since int64, err error) {
	events, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Limit: 1})
	if err != nil {
		return s, 0, err
	}
	s, err = find(ctx, d, client, args)
	return s, events.LastSeq, err
}

// follow signals on changed when something happened to a session or one of its runs after an event,
// and after each start of a daemon. When it ends, it sends the reason on ended, even if that is the
// end of ctx.
func follow(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64) (changed chan struct{}, ended chan error) {
	changed, ended = make(chan struct{}, 1), make(chan error, 1)
	look := func() {
		select {
		case changed <- struct{}{}:
		default: // a signal is pending already
		}
	}
	id, runs := s.Session.ID, map[agency.RunID]bool{}
	for i := range s.Agents {
		runs[s.Agents[i].RunID] = true
	}
	go func() {
		ended <- client.Follow(ctx, since, "", look, func(e agency.Event) error {
			if concerns(&e, id, runs) {
				look()
			}
			return nil
		})
	}()
	return changed, ended
}

// concerns reports whether an event is about a session or one of its runs; it adds a new run to
// runs.
func concerns(e *agency.Event, id agency.SessionID, runs map[agency.RunID]bool) bool {
	if e.RunID != "" {
		return runs[e.RunID]
	}
	var data struct {
		Session agency.SessionID `json:"session"`
		Run     agency.RunID     `json:"run"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Session != id {
		return false
	}
	if data.Run != "" {
		runs[data.Run] = true
	}
	return true
}

// rescanLimiter limits how often a client asks for a large session that changes all the time, so
// that it does not keep the daemon busy.
type rescanLimiter struct{ rested time.Time }

// due returns a channel that fires when it is time for the next look.
func (l *rescanLimiter) due() <-chan time.Time { return time.After(time.Until(l.rested)) }

// looked records a look that has ended.
func (l *rescanLimiter) looked(began time.Time) {
	l.rested = time.Now().Add(max(100*time.Millisecond, 5*time.Since(began)))
}

// changes follows a session from one state to the next.
type changes struct {
	client  *api.Client
	dir     string
	changed <-chan struct{}
	ended   <-chan error
	limiter rescanLimiter
}

// changesOf follows a session after an event, until ctx ends.
func (o *logsOptions) changesOf(ctx context.Context, client *api.Client, s *api.ShowSessionResponse, since int64) *changes {
	changed, ended := follow(ctx, client, s, since)
	return &changes{client: client, dir: o.Dir, changed: changed, ended: ended}
}

// next waits for a change and updates s. It returns when there are no more changes, or when an
// error arrives on failed.
func (c *changes) next(ctx context.Context, s *api.ShowSessionResponse, failed <-chan error) error {
	var due <-chan time.Time
	for {
		select {
		case <-c.changed:
			due = c.limiter.due()
		case <-due:
			// A request after the change sees all of it.
			began := time.Now()
			resp, err := api.Call(ctx, c.client, api.ShowSession, api.SessionRequest{Session: s.Session.Ref(), Dir: c.dir})
			if err == nil {
				*s = resp
				c.limiter.looked(began)
			}
			return err
		case err := <-failed:
			return err
		case err := <-c.ended:
			return err
		}
	}
}
