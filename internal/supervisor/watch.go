package supervisor

import (
	"slices"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// watch handles file events, and rescans for what they may have missed.
func (s *Supervisor) watch() {
	rescan := time.NewTicker(s.rescanInterval.every())
	defer rescan.Stop()
	beats := time.NewTicker(observe.BeatEvery)
	defer beats.Stop()
	for {
		select {
		case path := <-s.Watcher.Changes():
			s.Observer.Hint(path)
		case <-rescan.C:
			s.rescan()
		case <-beats.C:
			s.lookAtWrappers()
		case <-s.rescanInterval.changed:
			rescan.Reset(s.rescanInterval.every())
		case <-s.life.ctx.Done():
			return
		}
	}
}

// rescan finds changes without an event: changed status files, folders that were created again,
// wrappers that are gone. It also refreshes the heartbeat in the views.
func (s *Supervisor) rescan() {
	if err := s.Records.WriteFacts(s.life.ctx); err != nil && s.life.ctx.Err() == nil {
		s.Log.Error("write what was kept in memory", "err", err)
	}
	runs := s.Live.list()
	// One query for all runs: a thousand queries take a hundred times as long.
	records, err := s.Records.Runs(s.life.ctx, agency.Filter{Live: true})
	if err != nil {
		s.Log.Error("look at runs again", "err", err)
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
		s.Observer.LookAgain(r)
		if l.link == nil && r.Attempt.State == agency.Running {
			r = s.settleAgain(l)
			if r == nil {
				continue
			}
		}
		s.Observer.ReadSnapshot(s.life.ctx, l.id)
		s.views.refresh(s.life.ctx, l, r)
	}
	s.views.writeUnwritten(s.life.ctx)
	if s.settler.sessions.left.Swap(false) {
		if err := s.settler.sessions.endLeft(s.life.ctx); err != nil {
			s.Log.Warn("end sessions", "err", err)
		}
	}
	s.lookForSessions()
}

// settleAgain settles an attempt without a link, as it is recorded now: the previous rescan may
// have taken long, and meanwhile another goroutine may have settled the attempt and begun the next
// one. It returns the run, or nil when that attempt is gone.
func (s *Supervisor) settleAgain(l *live) *agency.Run {
	r, err := s.Records.Run(s.life.ctx, l.id)
	if err != nil || r.Attempt.Number != l.attempt {
		return nil
	}
	if _, err := s.settler.settle(s.life.ctx, r); err != nil {
		s.Log.Error("look at run again", "run", l.id, "err", err)
		return nil
	}
	if r, err = s.Records.Run(s.life.ctx, l.id); err != nil {
		return nil
	}
	return r
}

// lookForSessions finds live runs that have neither a connected wrapper nor a tmux session.
func (s *Supervisor) lookForSessions() {
	alone := map[agency.RunID]bool{}
	for _, l := range s.Live.list() {
		if l.link == nil {
			alone[l.id] = true
		}
	}
	if len(alone) == 0 {
		return
	}
	sessions, err := s.Tmux.Sessions(s.life.ctx)
	if err != nil {
		s.Log.Warn("list sessions", "err", err)
		return
	}
	s.Observer.SetUnseen(func(id agency.RunID) bool {
		return alone[id] && s.Live.link(id) == nil && !slices.Contains(sessions, agency.SessionPrefix+string(id))
	})
}

// lookAtWrappers writes into state.json which wrappers became inactive or active again.
func (s *Supervisor) lookAtWrappers() {
	for _, id := range s.Observer.Heartbeats() {
		l, ok := s.Live.get(id)
		if !ok {
			continue
		}
		if r, err := s.Records.Run(s.life.ctx, id); err == nil {
			s.views.refresh(s.life.ctx, &l, r)
		}
	}
}

// checkRecords checks all runs that were not removed, and writes the files that an earlier daemon
// could not.
func (s *Supervisor) checkRecords() {
	runs, err := s.Records.List(s.life.ctx, agency.Filter{})
	if err != nil {
		if s.life.ctx.Err() == nil {
			s.Log.Error("read runs", "err", err)
		}
		return
	}
	for _, r := range runs {
		if s.life.ctx.Err() != nil {
			return
		}
		if isBehind(r) {
			s.views.write(s.life.ctx, r)
		}
		s.Observer.CheckRecord(r)
	}
}
