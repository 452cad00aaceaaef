package supervisor

import (
	"context"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/status"
)

// readEvidence brings what was appended to an attempt's evidence file into its situation, and what changes how the agent
// stands into the record. The file is read in its order, each part once; where reading stopped is part of the situation.
func (s *Supervisor) readEvidence(ctx context.Context, id agency.RunID) { s.takeEvidence(ctx, id) }

// takeEvidence is readEvidence, and says whether all of the file was read.
func (s *Supervisor) takeEvidence(ctx context.Context, id agency.RunID) bool {
	unlock, err := s.locks.lock(ctx, "word "+string(id))
	if err != nil {
		return false
	}
	defer unlock()
	for {
		l, ok := s.liveCopy(id)
		if !ok {
			return false
		}
		path := filepath.Join(attemptDir(l.dir, l.attempt), agency.EventsFile)
		evidence, next, err := s.Spool.Tail(path, l.situation.Offset)
		if err != nil {
			s.Log.Warn("read evidence", "run", id, "err", err)
			return false
		}
		if next == l.situation.Offset {
			return true
		}
		situation := l.situation.Clone()
		now := s.Now()
		for _, e := range evidence {
			if e.At.After(now) || e.At.IsZero() {
				e.At = now
			}
			status.Observe(situation, e)
		}
		situation.Offset = next
		if err := s.recordSituation(ctx, &l, situation); err != nil {
			if ctx.Err() == nil {
				s.Log.Error("record situation", "run", id, "err", err)
			}
			return false
		}
	}
}

// liveCopy is a run that is not final, as it is now.
func (s *Supervisor) liveCopy(id agency.RunID) (liveRun, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[id]
	if l == nil {
		return liveRun{}, false
	}
	return *l, true
}

// recordSituation makes a situation the run's. It is written to the record when it means something new to people; the
// rest, counters and times, is in the evidence file already.
func (s *Supervisor) recordSituation(ctx context.Context, l *liveRun, situation *agency.Situation) error {
	kind := agency.RunnerKind("")
	var process *agency.Process
	if !status.SameMeaning(situation, l.situation) {
		if situation.Turn == agency.TurnEnded && l.situation.Turn != agency.TurnEnded {
			s.answered(ctx, l.id, situation)
		}
		r, err := s.Records.ChangeRun(ctx, l.id, func(r *agency.Run) ([]agency.News, error) {
			a := &r.Attempt
			if a.Number != l.attempt || a.State.Final() {
				return nil, nil
			}
			a.Situation = *situation
			if situation.Conversation != "" {
				a.ConversationID = situation.Conversation
			}
			return []agency.News{{Type: agency.SituationChanged, Data: situationNews(situation)}}, nil
		})
		if err != nil {
			return err
		}
		kind, process = r.Runner.Kind, r.Attempt.RunnerProcess
	}
	s.mu.Lock()
	if now := s.live[l.id]; now != nil && now.attempt == l.attempt {
		now.situation = situation
	}
	s.mu.Unlock()
	if kind != "" {
		s.followFiles(l.id, kind, situation, process)
		if status.Vague(situation) {
			s.lookSoon(l.id)
		}
	}
	return nil
}

// situationNews is what the event of a changed situation tells.
func situationNews(situation *agency.Situation) map[string]any {
	data := map[string]any{"turn": situation.Turn}
	if len(situation.Requests) > 0 {
		data["request"] = situation.Requests[0]
	}
	if t := situation.Failure; t != nil {
		data["error_class"], data["error"] = t.Class, t.Text
	}
	if t := situation.Retry; t != nil {
		data["retrying"] = t.Class
	}
	if r := situation.Reported; r != nil {
		data["report"], data["text"] = r.Report, r.Text
	}
	if situation.Interrupted {
		data["interrupted"] = true
	}
	return data
}

// followRetry is how long a folder of an agent's own may be missing before it is looked for again.
const followRetry = time.Second

// followFiles asks for hints about the agent's own files.
func (s *Supervisor) followFiles(id agency.RunID, kind agency.RunnerKind, situation *agency.Situation, process *agency.Process) {
	for _, path := range s.Harness.Files(kind, situation, process) {
		s.mu.Lock()
		_, live := s.live[id]
		_, known := s.followed[path][id]
		if live && !known {
			if s.followed[path] == nil {
				s.followed[path] = map[agency.RunID]bool{}
			}
			s.followed[path][id] = true
		}
		s.mu.Unlock()
		if !live || known {
			continue
		}
		if err := s.Watcher.Add(filepath.Dir(path)); err != nil {
			s.followLater(id, path, func() { s.followFiles(id, kind, situation, process) })
			continue
		}
		s.work.Go(func() { s.follow(s.ctx, id, path) })
	}
}

// followLater tries again to follow a file: its folder comes with its first line.
func (s *Supervisor) followLater(id agency.RunID, path string, again func()) {
	s.mu.Lock()
	if s.followed[path][id] { // the run may have ended meanwhile
		s.followed[path][id] = false
	}
	s.mu.Unlock()
	time.AfterFunc(followRetry, func() {
		s.mu.Lock()
		delete(s.followed[path], id)
		s.mu.Unlock()
		if s.ctx.Err() == nil {
			again()
		}
	})
}

// follow reads what is new in a file of the agent's own, and puts it where all evidence is.
func (s *Supervisor) follow(ctx context.Context, id agency.RunID, path string) {
	unlock, err := s.locks.lock(ctx, "file "+string(id))
	if err != nil {
		return
	}
	defer unlock()
	s.readEvidence(ctx, id) // what hooks told already is older than what the file says
	l, ok := s.liveCopy(id)
	if !ok {
		return
	}
	r, err := s.Records.Run(ctx, id)
	if err != nil {
		return
	}
	s.observe(ctx, &l, s.Harness.ReadFile(r.Runner.Kind, path, l.situation))
}

// observe puts evidence that the daemon itself found into the evidence file, and reads it from there. It says whether the file
// has it.
func (s *Supervisor) observe(ctx context.Context, l *liveRun, evidence []agency.Evidence) (kept bool) {
	if len(evidence) == 0 {
		return true
	}
	now := s.Now()
	for i := range evidence {
		if evidence[i].At.IsZero() || evidence[i].At.After(now) {
			evidence[i].At = now
		}
	}
	if err := s.Spool.Append(filepath.Join(attemptDir(l.dir, l.attempt), agency.EventsFile), evidence...); err != nil {
		s.Log.Warn("keep evidence", "run", l.id, "err", err)
		return false
	}
	s.readEvidence(ctx, l.id)
	return true
}

// keepSituation puts what is known of an agent that ended into its last record.
func (s *Supervisor) keepSituation(id agency.RunID, a *agency.Attempt) {
	if l, ok := s.liveCopy(id); ok && l.attempt == a.Number {
		a.Situation = *l.situation
	}
}

// evidenceWaits tells whether the evidence file may hold something new.
func (s *Supervisor) evidenceWaits(l *liveRun) bool {
	return stampOf(filepath.Join(attemptDir(l.dir, l.attempt), agency.EventsFile)).size != l.situation.Offset
}

// observedAt is when a file got its content: the kernel's own time of the change, which no runner can write, unless the clock
// was changed since.
func observedAt(path string, begun, now time.Time) time.Time {
	at := changeTime(path)
	if at.Before(begun) || at.After(now) {
		return now
	}
	return at
}
