package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"agency"
)

// The statements for changes of a session are prepared once: parsing takes longer than executing.
var (
	updateSession = `UPDATE sessions SET (` + sessionColumns + `, updated_at_ms) = (` + marks(columns(sessionColumns)+1) + `) WHERE seq = ?`

	updateAgent = `UPDATE session_agents SET (` + agentColumns + `, updated_at_ms) = (` + marks(columns(agentColumns)+1) + `)
		WHERE session = ? AND id = ?`
)

// ChangeSession calls change, which edits a session and the named agents, or all of them when
// agents is nil. It writes the differences and the events that change returns, all or nothing. No
// other change happens in between; change must not call the store. The store sets Counts from the
// agents, and keeps ids, order and UpdatedAt, whatever change does to them. A transition that
// agency.NextAgent refuses, or any change of a settled session, is E_INVALID_STATE. An error of
// change is returned unwrapped, and nothing is written. Without differences and events nothing is
// written either. A missing session or agent is E_SESSION_NOT_FOUND or E_AGENT_NOT_FOUND.
// ChangeSession returns the session as stored now.
func (s *sessions) ChangeSession(ctx context.Context, id agency.SessionID, agents []string,
	change func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error),
) (*agency.Session, error) {
	var stored agency.Session
	err := s.db.write(ctx, "change session in", func(tx *transaction) error {
		c, err := tx.openSession(ctx, id)
		if err != nil {
			return err
		}
		before, err := c.agentsOf(ctx, agents)
		if err != nil {
			return err
		}
		session, edited, pointers := c.session, slices.Clone(before), make([]*agency.SessionAgent, len(before))
		for i := range edited {
			pointers[i] = &edited[i]
		}
		drafts, err := change(&session, pointers)
		if err != nil {
			return err
		}
		for i := range edited {
			if err := c.set(&before[i], &edited[i], len(drafts) > 0); err != nil {
				return err
			}
		}
		if err := c.setSession(&session, len(drafts) > 0); err != nil {
			return err
		}
		if err := c.save(ctx); err != nil {
			return err
		}
		stored = c.session
		return tx.append(ctx, "", 0, drafts...)
	})
	if err != nil {
		return nil, err
	}
	return &stored, nil
}

// changing is a session that one transaction changes. Each agent is written once, at the end.
type changing struct {
	tx      *transaction
	stored  agency.Session // before the change
	session agency.Session // after the change
	agents  map[string]*agency.SessionAgent
	changed map[string]bool // agents that save must write
	touched bool
}

func (tx *transaction) openSession(ctx context.Context, id agency.SessionID) (*changing, error) {
	select1 := tx.StmtContext(ctx, tx.db.writerSession)
	defer func() { _ = select1.Close() }()
	s, err := readSession(ctx, select1, id)
	if err != nil {
		return nil, err
	}
	return &changing{tx: tx, stored: s, session: s, agents: map[string]*agency.SessionAgent{}, changed: map[string]bool{}}, nil
}

// agent returns one agent with its changes so far.
func (c *changing) agent(ctx context.Context, id string) (agency.SessionAgent, error) {
	if a := c.agents[id]; a != nil {
		return *a, nil
	}
	select1 := c.tx.StmtContext(ctx, c.tx.db.writerAgent)
	defer func() { _ = select1.Close() }()
	a, err := scanAgent(select1.QueryRowContext(ctx, c.stored.Seq, id))
	if errors.Is(err, sql.ErrNoRows) {
		return a, noAgent(c.stored.ID, id)
	}
	a.Session = c.stored.ID
	return a, err
}

func (c *changing) agentsOf(ctx context.Context, ids []string) ([]agency.SessionAgent, error) {
	if ids == nil {
		rows, err := c.tx.QueryContext(ctx, selectAgents+`ORDER BY a.position`, string(c.stored.ID))
		if err != nil {
			return nil, err
		}
		return collect(rows, scanAgent)
	}
	agents := make([]agency.SessionAgent, len(ids))
	for i, id := range ids {
		var err error
		if agents[i], err = c.agent(ctx, id); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// set records a changed agent to be written, unless it is unchanged and force is false.
func (c *changing) set(before, after *agency.SessionAgent, force bool) error {
	after.Session, after.ID, after.Position = before.Session, before.ID, before.Position
	was, err1 := agentValues(before)
	is, err2 := agentValues(after)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("encode agent %s of session %s: %w", after.ID, c.stored.ID, err)
	}
	if slices.Equal(was, is) && !force {
		return nil
	}
	if before.Status != after.Status {
		if err := agency.NextAgent(before.Status, after.Status); err != nil {
			return agency.Errorf(agency.CodeInvalidState, "agent %s of session %s is %s and cannot become %s", after.ID, c.stored.ID, before.Status, after.Status).
				WithHint("agency session show %s", c.stored.ID)
		}
	}
	if err := c.open(); err != nil {
		return err
	}
	c.session.Counts.Add(before.Status, -1)
	c.session.Counts.Add(after.Status, 1)
	c.agents[after.ID], c.changed[after.ID], c.touched = after, true, true
	return nil
}

// setSession records the edited session to be written, unless it is unchanged and force is false.
func (c *changing) setSession(s *agency.Session, force bool) error {
	counts := c.session.Counts
	s.ID, s.Seq, s.Repo, s.UpdatedAt, s.Counts = c.stored.ID, c.stored.Seq, c.stored.Repo, c.stored.UpdatedAt, counts
	if !slices.Equal(sessionValues(s), sessionValues(&c.session)) {
		if err := c.open(); err != nil {
			return err
		}
		c.touched = true
	}
	c.session = *s
	c.touched = c.touched || force
	return nil
}

// open refuses changes of a settled session.
func (c *changing) open() error {
	if c.session.Status.Final() {
		return agency.Errorf(agency.CodeInvalidState, "session %s is %s and can no longer change", c.session.ID, c.session.Status).
			WithHint("agency session show %s", c.session.ID)
	}
	return nil
}

// save writes the recorded changes. UpdatedAt grows with each change, even within a millisecond or
// when the clock goes back.
func (c *changing) save(ctx context.Context) error {
	if !c.touched {
		return nil
	}
	c.session.UpdatedAt = c.tx.now
	if floor := c.stored.UpdatedAt.Add(time.Millisecond); c.session.UpdatedAt.Before(floor) {
		c.session.UpdatedAt = floor
	}
	updated := c.session.UpdatedAt.UnixMilli()
	if _, err := c.tx.exec(ctx, c.tx.db.writerUpdateSession, append(sessionValues(&c.session), updated, c.stored.Seq)...); err != nil {
		return err
	}
	for id := range c.changed {
		values, err := agentValues(c.agents[id])
		if err != nil {
			return err
		}
		if _, err := c.tx.exec(ctx, c.tx.db.writerUpdateAgent, append(values, updated, c.stored.Seq, id)...); err != nil {
			return err
		}
	}
	return nil
}
