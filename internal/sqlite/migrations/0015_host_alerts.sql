-- An episode may belong to the machine: to no run and no session.

CREATE TABLE alerts_of_all (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  kind             TEXT NOT NULL,
  run_id           TEXT REFERENCES runs (id),
  session          TEXT, -- its id
  attempt          INTEGER NOT NULL, -- 0 unless of a run
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
  CHECK (run_id IS NULL OR session IS NULL),
  UNIQUE (run_id, attempt, kind, cause)
) STRICT;

INSERT INTO alerts_of_all (seq, id, kind, run_id, session, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_at_ms, acked_by,
    snoozed_until_ms, told, level, told_at_ms, recipients)
  SELECT seq, id, kind, run_id, session, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_at_ms, acked_by, snoozed_until_ms,
    told, level, told_at_ms, recipients FROM alerts ORDER BY seq;

DROP TABLE alerts;
ALTER TABLE alerts_of_all RENAME TO alerts;

CREATE INDEX alerts_open ON alerts (run_id, seq) WHERE resolved_at_ms IS NULL;

-- The same cause may come again when it was over. A session's failure does not.
CREATE UNIQUE INDEX alerts_session_open ON alerts (session, kind, cause) WHERE session IS NOT NULL AND resolved_at_ms IS NULL;
CREATE UNIQUE INDEX alerts_session_failed ON alerts (session) WHERE kind = 'session.failed';
CREATE UNIQUE INDEX alerts_host_open ON alerts (kind, cause) WHERE run_id IS NULL AND session IS NULL AND resolved_at_ms IS NULL;
