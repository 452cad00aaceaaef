package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agency"
	"agency/internal/file"
)

// Leads reports whether a session leads a run: the run works for an agent of it, and was not
// started again since the session settled. The removal of a session does not change that.
func (a Agents) Leads(ctx context.Context, r *agency.Run) (bool, error) {
	id, _, found, err := a.Store.AgentOfRun(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if found {
		s, err := a.Store.Session(ctx, id)
		if err != nil {
			return false, err
		}
		if s.CompletedAt == nil || !r.Attempt.CreatedAt.After(*s.CompletedAt) {
			return true, nil
		}
	}
	until, err := a.Store.LedUntil(ctx, r.ID)
	return err == nil && !r.Attempt.CreatedAt.After(until), err
}

// Title returns the name of a session for notices: its own, or its reference.
func Title(s *agency.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Ref()
}

// Messenger sends the messages and notices about the ends of sessions.
type Messenger struct {
	// Owner sends a message to the run that started a session, or to the user when that run is
	// over. It returns the recipients.
	Owner func(ctx context.Context, owner string, m *agency.Message) ([]string, error)
	// Notify sends a notice to the user's channels.
	Notify func(ctx context.Context, n agency.Notice) error
	Now    func() time.Time
}

// Send sends the owner of a session a message about its end, and the user also a notice. Their
// ids make them the same message and the same notice when Send is repeated after a crash.
func (t Messenger) Send(ctx context.Context, s *agency.Session, kind agency.NoticeKind, text string) error {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", s.ID, kind))
	id := "m_" + hex.EncodeToString(sum[:10])
	payload := map[string]any{
		"session_id": s.ID, "session_name": s.Name, "status": s.Status, "repo": s.Repo.Root, "summary": s.Counts, "text": text,
	}
	if report := s.ReportPath(); file.IsRegular(report) {
		payload["report_path"] = report
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("encode the notice of session %s: %w", s.ID, err)
	}
	recipients, err := t.Owner(ctx, s.Owner, &agency.Message{ID: id, Type: string(kind), From: agency.Daemon, Payload: data})
	if err != nil || !slices.Contains(recipients, agency.User) {
		return err
	}
	return t.Notify(ctx, agency.Notice{
		ID: id, Kind: string(kind), Title: Title(s) + " " + kind.Words(), Body: text, Repo: s.Repo.Root, Payload: data, At: t.Now(),
	})
}
