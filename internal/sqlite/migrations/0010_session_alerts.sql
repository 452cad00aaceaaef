-- Episodes belong to a run or to a session. One of a session outlives it in the record, as that of a run does.

CREATE TABLE alerts_of_both (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  kind             TEXT NOT NULL,
  run_id           TEXT REFERENCES runs (id),
  session          TEXT, -- its id
  attempt          INTEGER NOT NULL, -- 0 of a session
  cause            TEXT NOT NULL,
  payload          TEXT NOT NULL, -- JSON object
  opened_at_ms     INTEGER NOT NULL,
  resolved_at_ms   INTEGER,
  acked_at_ms      INTEGER,
  acked_by         TEXT NOT NULL,
  snoozed_until_ms INTEGER,
  told             INTEGER NOT NULL,
  level            INTEGER NOT NULL,
  told_at_ms       INTEGER,
  recipients       TEXT NOT NULL, -- JSON array
  CHECK ((run_id IS NULL) <> (session IS NULL)),
  UNIQUE (run_id, attempt, kind, cause)
) STRICT;

INSERT INTO alerts_of_both (seq, id, kind, run_id, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_at_ms, acked_by,
    snoozed_until_ms, told, level, told_at_ms, recipients)
  SELECT seq, id, kind, run_id, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_at_ms, acked_by, snoozed_until_ms, told,
    level, told_at_ms, recipients FROM alerts ORDER BY seq;

-- People were told of the failures before this, by messages: these are over.
INSERT INTO alerts_of_both (id, kind, session, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_by, told, level, told_at_ms, recipients)
  SELECT 'a_' || s.id, 'session.failed', s.id, 0, 'failed',
    json_object('session_id', s.id, 'session_name', s.name, 'status', s.status, 'repo', p.root, 'text', 'an agent failed'),
    s.completed_at_ms, s.completed_at_ms, '', 1, 0, s.completed_at_ms, '[]'
  FROM sessions s JOIN repos p ON p.fingerprint = s.repo
  WHERE s.status = 'failed' AND s.reported = 1 AND s.completed_at_ms IS NOT NULL ORDER BY s.seq;

DROP TABLE alerts;
ALTER TABLE alerts_of_both RENAME TO alerts;

CREATE INDEX alerts_open ON alerts (run_id, seq) WHERE resolved_at_ms IS NULL;

-- The same cause may come again when it was over. A failure does not.
CREATE UNIQUE INDEX alerts_session_open ON alerts (session, kind, cause) WHERE session IS NOT NULL AND resolved_at_ms IS NULL;
CREATE UNIQUE INDEX alerts_session_failed ON alerts (session) WHERE kind = 'session.failed';

-- What was told before alerts did that.
ALTER TABLE sessions DROP COLUMN told;
ALTER TABLE sessions DROP COLUMN tellings;
