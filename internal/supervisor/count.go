package supervisor

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/service"
	"agency/internal/supervisor/observe"
)

// Counter counts what a run changed when its agent rests or ends, so that lists show it without
// asking git. It also saves the state of the worktree then, for the changes of the next turn. It is a
// service.
type Counter struct {
	store    *Records
	work     *Work
	observer *observe.Observer
	room     func() error
	log      *slog.Logger

	life service.Background
}

// The limits of counting: git may take a fifth of the time of one processor for it, and a run is
// counted at most once in countPause.
const (
	countPause = time.Second
	countShare = 5
	countPage  = 1000 // events that are read at once
)

// Start counts runs that rest or end from now on, until Stop.
func (c *Counter) Start(ctx context.Context) error {
	return c.life.Start(ctx, func(background context.Context) error {
		seq, err := c.store.LastSeq(ctx)
		if err == nil {
			c.life.Go(func() { c.follow(background, seq) })
		}
		return err
	})
}

// Stop ends the counting. It is idempotent.
func (c *Counter) Stop() { c.life.Stop() }

// follow counts the runs that the events after seq are about, until ctx ends.
func (c *Counter) follow(ctx context.Context, seq int64) {
	for {
		changed := c.store.Changed()
		ids, next, err := c.rested(ctx, seq)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("read which runs rest", "err", err)
		}
		for _, id := range ids {
			began := time.Now()
			c.count(ctx, id)
			if !sleep(ctx, (countShare-1)*time.Since(began)) {
				return
			}
		}
		if seq == next {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
		seq = next
		if !sleep(ctx, countPause) {
			return
		}
	}
}

// rests are the events with which an agent may come to rest.
var rests = []agency.EventType{agency.AttemptEnded, agency.AgentStateChanged, agency.ContractChanged}

// rested returns the runs whose agent may have come to rest by the events after seq, and the last
// of these events.
func (c *Counter) rested(ctx context.Context, seq int64) (ids []agency.RunID, last int64, err error) {
	events, err := c.store.Events(ctx, seq, "", countPage)
	seen := map[agency.RunID]bool{}
	for i := range events {
		e := &events[i]
		seq = e.Seq
		if slices.Contains(rests, e.Type) && !seen[e.RunID] {
			seen[e.RunID] = true
			ids = append(ids, e.RunID)
		}
	}
	return ids, seq, err
}

// count records what a run changed, if its agent does not work. What cannot be counted now, as in a
// worktree that is being removed, stays as it was.
func (c *Counter) count(ctx context.Context, id agency.RunID) {
	r, err := c.store.Run(ctx, id)
	if err != nil || r.RemovedAt != nil || !c.observer.Derive(r).Label.Settled() {
		return
	}
	stat, _, err := c.work.diffStat(ctx, r)
	if err != nil {
		c.log.Debug("count what a run changed", "run", id, "err", err)
		return
	}
	now := func() (*agency.Run, error) {
		r, err := c.store.Run(ctx, id)
		if err == nil {
			c.observer.Derive(r)
		}
		return r, err
	}
	err = c.room() // the agents need the rest of a disk that is nearly full
	if err == nil {
		err = c.work.keepTurn(ctx, r, now)
	}
	if err != nil {
		c.log.Debug("keep how an agent left its worktree", "run", id, "err", err)
	}
	size := agency.ChangeSize{Files: stat.Files, Added: stat.Added, Deleted: stat.Deleted}
	if r.Changes != nil && *r.Changes == size {
		return
	}
	_, err = c.store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Changes = &size
		return nil, nil
	})
	if err != nil && ctx.Err() == nil {
		c.log.Warn("record what a run changed", "run", id, "err", err)
	}
}

// sleep waits for a time; it reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
