package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"agency"
	"agency/internal/scheduler"
)

// newResults makes what looks after the ends of sessions.
func (d *Daemon) newResults() *scheduler.Results {
	return scheduler.NewResults(scheduler.ResultDeps{
		Store: d.store, Ended: d.sup.Ended, Facts: d.sup.Facts, Tell: d.tellSession, Log: d.Log, Now: d.clock.Now,
	})
}

// led says that a session leads a run: the run works for an agent of it, and nobody has started it again since the session settled.
func (d *Daemon) led(ctx context.Context, r *agency.Run) (bool, error) {
	id, _, found, err := d.store.AgentOfRun(ctx, r.ID)
	if err != nil || !found {
		return false, err
	}
	s, err := d.store.Session(ctx, id)
	if err != nil {
		return false, err
	}
	return s.CompletedAt == nil || !r.Attempt.CreatedAt.After(*s.CompletedAt), nil
}

// sessionTitle is how people call a session.
func sessionTitle(s *agency.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Ref()
}

// tellSession tells who started a session of its end, or the person when that is a run that is over: by a message, and the person
// through the channels, too. The id makes it the same message and the same notice when it is told again after a crash.
func (d *Daemon) tellSession(ctx context.Context, s *agency.Session, kind agency.NoticeKind, text string) error {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", s.ID, kind))
	id := "m_" + hex.EncodeToString(sum[:10])
	data, err := json.Marshal(map[string]any{
		"session_id": s.ID, "session_name": s.Name, "status": s.Status, "repo": s.Repo.Root, "summary": s.Tally, "text": text,
		"report_path": s.ReportPath(),
	})
	if err != nil {
		return fmt.Errorf("encode the notice of session %s: %w", s.ID, err)
	}
	recipients, err := d.sup.Inbox.TellOwner(ctx, s.Owner, &agency.Message{ID: id, Type: string(kind), From: agency.Daemon, Payload: data})
	if err != nil || !slices.Contains(recipients, agency.User) {
		return err
	}
	_, err = d.notifier.Load().Enqueue(ctx, agency.Notice{
		ID: id, Kind: string(kind), Title: sessionTitle(s) + " " + kind.Words(), Body: text, Repo: s.Repo.Root, Payload: data, At: d.clock.Now(),
	})
	return err
}
