package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"agency"
)

// sessionColumns are the columns that a change may write, in the order of sessionValues and
// sessionDest.
const sessionColumns = `name, source, source_file, external, repo, status, queued, running, complete, failed, cancelled, status_dir, dir,
	plan_path, plan_hash, max_parallel, paused, cancel_at_ms, retry_of, owner, config, started_at_ms, completed_at_ms, extra`

func sessionValues(s *agency.Session) []any {
	t := &s.Counts
	return []any{
		s.Name, s.Source, s.SourceFile, s.External, s.Repo.Fingerprint, string(s.Status), t.Queued, t.Running, t.Complete, t.Failed,
		t.Cancelled, s.StatusDir, s.Dir, s.PlanPath, s.PlanHash, s.MaxParallel, s.Paused, millis(s.CancelAt), string(s.RetryOf), s.Owner,
		s.Config, millis(&s.StartedAt), millis(s.CompletedAt), object(s.Extra),
	}
}

// selectSessions reads sessions; a condition on s and p follows.
const selectSessions = `SELECT s.seq, s.id, s.updated_at_ms, s.reported, p.root, p.common_dir, ` + sessionColumns + `
	FROM sessions s JOIN repos p ON p.fingerprint = s.repo `

const selectSession = selectSessions + `WHERE s.id = ?`

func scanSession(row scanner) (agency.Session, error) {
	var s agency.Session
	t := &s.Counts
	err := row.Scan(whole(&s.Seq), text(&s.ID), moment(&s.UpdatedAt), flag(&s.Reported), text(&s.Repo.Root), text(&s.Repo.CommonDir), text(&s.Name),
		text(&s.Source), text(&s.SourceFile), flag(&s.External), text(&s.Repo.Fingerprint), text(&s.Status), whole(&t.Queued),
		whole(&t.Running), whole(&t.Complete), whole(&t.Failed), whole(&t.Cancelled), text(&s.StatusDir), text(&s.Dir), text(&s.PlanPath),
		text(&s.PlanHash), whole(&s.MaxParallel), text(&s.Paused), optionalMoment(&s.CancelAt), text(&s.RetryOf), text(&s.Owner),
		text(&s.Config), moment(&s.StartedAt), optionalMoment(&s.CompletedAt), toObject(&s.Extra))
	t.Total = t.Queued + t.Running + t.Complete + t.Failed + t.Cancelled
	return s, err
}

// object returns a JSON object as text, or null without one.
func object(data json.RawMessage) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func toObject(to *json.RawMessage) column {
	return as(func(text string, ok bool) error {
		if ok {
			*to = json.RawMessage(text)
		}
		return nil
	})
}

// CreateSession writes a new session with its repository, its agents and its plan, or nil without
// one, together with the event session.created. It sets the fields that the store decides: Seq,
// UpdatedAt and Counts. The session inherits the results of the runs that it takes over from
// RetryOf. The error for a taken id is E_NAME_EXISTS: draw another.
func (s *sessions) CreateSession(ctx context.Context, session *agency.Session, agents []agency.SessionAgent, plan []byte) error {
	created := *session
	err := s.db.write(ctx, "create session in", func(tx *transaction) error {
		if err := tx.putRepo(ctx, created.Repo); err != nil {
			return err
		}
		created.UpdatedAt, created.Counts = tx.now, agency.Counts{}
		for i := range agents {
			created.Counts.Add(agents[i].Status, 1)
		}
		values := append(sessionValues(&created), string(created.ID), tx.now.UnixMilli())
		result, err := tx.ExecContext(ctx, `INSERT INTO sessions (`+sessionColumns+`, id, updated_at_ms) VALUES (`+marks(len(values))+`)
			ON CONFLICT (id) DO NOTHING`, values...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return agency.Errorf(agency.CodeNameExists, "there is a session %s already", created.ID).WithHint("try again")
		}
		if created.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		if plan != nil {
			if _, err := tx.ExecContext(ctx, `INSERT INTO session_plans (session, plan) VALUES (?, ?)`, created.Seq, plan); err != nil {
				return err
			}
		}
		if err := tx.insertAgents(ctx, &created, agents); err != nil {
			return err
		}
		if created.RetryOf != "" {
			if err := tx.inheritResults(ctx, &created); err != nil {
				return err
			}
		}
		return tx.append(ctx, "", 0, created.EventDraft(agency.SessionCreated))
	})
	if err != nil {
		return err
	}
	*session = created
	return nil
}

// Session returns one session, or E_SESSION_NOT_FOUND.
func (s *sessions) Session(ctx context.Context, id agency.SessionID) (*agency.Session, error) {
	session, err := readSession(ctx, s.db.readerSession, id)
	if err != nil {
		return nil, problem("read session from", s.db.path, err)
	}
	return &session, nil
}

func readSession(ctx context.Context, prepared *sql.Stmt, id agency.SessionID) (agency.Session, error) {
	session, err := scanSession(prepared.QueryRowContext(ctx, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return session, noSession(id)
	}
	return session, err
}

func noSession(id agency.SessionID) error {
	return agency.Errorf(agency.CodeSessionNotFound, "no session %q", string(id)).WithHint("agency session ls shows the sessions there are")
}

// MatchSessions returns the sessions that ref can mean, running ones first, then newest first. It
// returns at most limit of them; with 0, all. The first kind of match with a result decides: the
// id, the name, the beginning of an id, of its last eight characters or of a name. A beginning has
// agency.MinPrefix characters or more.
func (s *sessions) MatchSessions(ctx context.Context, ref string, limit int) ([]agency.Session, error) {
	const last = "\U0010ffff" // sorts after every character that an id or a name can hold
	for _, q := range []struct {
		where     string
		args      []any
		minLength int
	}{
		{`s.id = ?`, []any{ref}, 1},
		{`s.name = ? AND s.name <> ''`, []any{ref}, 1},
		{
			`s.seq IN (SELECT seq FROM sessions WHERE id >= ? AND id < ? UNION ALL SELECT seq FROM sessions WHERE name >= ? AND name < ? AND name <> ''
				UNION ALL SELECT seq FROM sessions WHERE substr(id, length(id) - 7, length(?)) = ?)`,
			[]any{ref, ref + last, ref, ref + last, ref, ref},
			agency.MinPrefix,
		},
	} {
		if len(ref) < q.minLength {
			continue
		}
		found, err := s.querySessions(ctx, `WHERE `+q.where+` ORDER BY s.status <> 'running', s.seq DESC LIMIT ?`, append(q.args, atMost(limit))...)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return []agency.Session{}, nil
}

// Sessions returns the sessions that match a filter, newest first.
func (s *sessions) Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error) {
	where, args := `WHERE true`, []any{}
	if f.Repo != "" {
		where += ` AND s.repo = ?`
		args = append(args, f.Repo)
	}
	if f.Live {
		where += ` AND s.status = 'running'`
	}
	return s.querySessions(ctx, where+` ORDER BY s.seq DESC LIMIT ?`, append(args, atMost(f.Limit))...)
}

// SessionsWithStaleFiles returns the sessions whose status files may be out of date, oldest first:
// all running ones, and the settled ones without a call of MarkFilesWritten.
func (s *sessions) SessionsWithStaleFiles(ctx context.Context) ([]agency.Session, error) {
	return s.querySessions(ctx, `WHERE s.filed = 0 ORDER BY s.seq`)
}

// MarkFilesWritten records that the status file of a settled session shows how it ended.
func (s *sessions) MarkFilesWritten(ctx context.Context, id agency.SessionID) error {
	return s.db.write(ctx, "change session in", func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, `UPDATE sessions SET filed = 1 WHERE id = ? AND status <> 'running'`, string(id))
		return err
	})
}

func (s *sessions) querySessions(ctx context.Context, where string, args ...any) ([]agency.Session, error) {
	rows, err := s.db.readers.QueryContext(ctx, selectSessions+where, args...)
	if err != nil {
		return nil, problem("read sessions from", s.db.path, err)
	}
	sessions, err := collect(rows, scanSession)
	return sessions, problem("read sessions from", s.db.path, err)
}

// SessionPlan returns the plan that CreateSession got, or nil.
func (s *sessions) SessionPlan(ctx context.Context, id agency.SessionID) ([]byte, error) {
	var plan []byte
	err := s.db.readers.QueryRowContext(ctx, `SELECT p.plan FROM sessions s LEFT JOIN session_plans p ON p.session = s.seq WHERE s.id = ?`,
		string(id)).Scan(&plan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noSession(id)
	}
	return plan, problem("read session from", s.db.path, err)
}
