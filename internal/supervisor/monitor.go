package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// monitor keeps the record of live runs in agreement with this host: at the start of the daemon, and
// then until Stop.
type monitor struct {
	store      *Records
	live       *Live
	observer   *observe.Observer
	views      *views
	settler    *settler
	sessions   *sessionEnder
	containers *containers
	tmux       Tmux
	watcher    Watcher
	interval   *rescanInterval
	log        *slog.Logger
	life       *life
}

// reconcile settles every run that is recorded as live, and ends what an earlier daemon left of the
// others. It returns the runs whose removal was cut off.
func (m *monitor) reconcile(ctx context.Context) (removing []*agency.Run, err error) {
	runs, err := m.store.Runs(ctx, agency.Filter{Live: true})
	if err != nil {
		return nil, fmt.Errorf("read live runs: %w", err)
	}
	for i := range runs {
		r := &runs[i]
		alive, err := m.settler.adopt(ctx, r)
		switch {
		case err != nil:
			// One run that cannot be settled must not keep the others unsupervised.
			m.log.Error("settle run", "run", r.ID, "err", err)
			m.settler.track(r)
			m.life.Go(func() { m.settler.adoptLater(r.ID) })
		case alive:
			m.life.Go(func() { m.settler.settleWhenDead(r.ID, reconnect) })
		}
		if alive {
			m.observer.ReadStatusFiles(r) // before the first answer
		}
	}
	kept, err := m.store.Runs(ctx, agency.Filter{})
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	for i := range kept {
		r := &kept[i]
		if r.Removing != nil {
			removing = append(removing, r)
		}
		if r.Attempt.State.Final() {
			m.containers.removeSoon(r)
		}
		if r.Attempt.State != agency.Failed {
			continue
		}
		if err := m.settler.undoUnstarted(ctx, r.ID); err != nil {
			m.log.Error("undo creation", "run", r.ID, "err", err)
			m.life.Go(func() { m.settler.adoptLater(r.ID) })
		}
	}
	return removing, m.sessions.endLeft(ctx)
}

// watch handles file events, and rescans for what they may have missed.
func (m *monitor) watch() {
	rescan := time.NewTicker(m.interval.every())
	defer rescan.Stop()
	beats := time.NewTicker(observe.BeatEvery)
	defer beats.Stop()
	for {
		select {
		case path := <-m.watcher.Changes():
			m.observer.FileChanged(path)
		case <-rescan.C:
			m.rescan()
		case <-beats.C:
			m.lookAtWrappers()
		case <-m.interval.changed:
			rescan.Reset(m.interval.every())
		case <-m.life.ctx.Done():
			return
		}
	}
}

// rescan finds changes without an event: changed status files, folders that were created again,
// wrappers that are gone. It also refreshes the heartbeat in the views.
func (m *monitor) rescan() {
	if err := m.store.WriteFacts(m.life.ctx); err != nil && m.life.ctx.Err() == nil {
		m.log.Error("write what was kept in memory", "err", err)
	}
	runs := m.live.list()
	// One query for all runs: a thousand queries take a hundred times as long.
	records, err := m.store.Runs(m.life.ctx, agency.Filter{Live: true})
	if err != nil {
		m.log.Error("look at runs again", "err", err)
		return
	}
	byID := make(map[agency.RunID]*agency.Run, len(records))
	for i := range records {
		byID[records[i].ID] = &records[i]
	}
	for i := range runs {
		l := &runs[i]
		r := byID[l.id]
		if r == nil || r.Attempt.Number != l.attempt {
			continue // it ended meanwhile
		}
		m.observer.LookAgain(r)
		if l.link == nil && r.Attempt.State == agency.Running {
			r = m.settleAgain(l)
			if r == nil {
				continue
			}
		}
		m.observer.ReadSnapshot(m.life.ctx, l.id)
		m.views.refresh(m.life.ctx, l, r)
	}
	m.views.writeUnwritten(m.life.ctx)
	if err := m.sessions.retry(m.life.ctx); err != nil {
		m.log.Warn("end sessions", "err", err)
	}
	m.lookForSessions()
}

// settleAgain settles an attempt without a link, as it is recorded now: the previous rescan may
// have taken long, and meanwhile another goroutine may have settled the attempt and begun the next
// one. It returns the run, or nil when that attempt is gone.
func (m *monitor) settleAgain(l *live) *agency.Run {
	r, err := m.store.Run(m.life.ctx, l.id)
	if err != nil || r.Attempt.Number != l.attempt {
		return nil
	}
	if _, err := m.settler.settle(m.life.ctx, r); err != nil {
		m.log.Error("look at run again", "run", l.id, "err", err)
		return nil
	}
	if r, err = m.store.Run(m.life.ctx, l.id); err != nil {
		return nil
	}
	return r
}

// lookForSessions finds live runs that have neither a connected wrapper nor a tmux session.
func (m *monitor) lookForSessions() {
	alone := map[agency.RunID]bool{}
	for _, l := range m.live.list() {
		if l.link == nil {
			alone[l.id] = true
		}
	}
	if len(alone) == 0 {
		return
	}
	sessions, err := m.tmux.Sessions(m.life.ctx)
	if err != nil {
		m.log.Warn("list sessions", "err", err)
		return
	}
	m.observer.SetUnseen(func(id agency.RunID) bool {
		return alone[id] && m.live.link(id) == nil && !slices.Contains(sessions, agency.SessionPrefix+string(id))
	})
}

// lookAtWrappers writes into state.json which wrappers became inactive or active again.
func (m *monitor) lookAtWrappers() {
	for _, id := range m.observer.Heartbeats() {
		l, ok := m.live.get(id)
		if !ok {
			continue
		}
		if r, err := m.store.Run(m.life.ctx, id); err == nil {
			m.views.refresh(m.life.ctx, &l, r)
		}
	}
}

// checkRecords checks all runs that were not removed, and writes the files that an earlier daemon
// could not.
func (m *monitor) checkRecords() {
	runs, err := m.store.List(m.life.ctx, agency.Filter{})
	if err != nil {
		if m.life.ctx.Err() == nil {
			m.log.Error("read runs", "err", err)
		}
		return
	}
	for _, r := range runs {
		if m.life.ctx.Err() != nil {
			return
		}
		if isBehind(r) {
			m.views.write(m.life.ctx, r)
		}
		m.observer.CheckRecord(r)
	}
}
