-- Episodes in which somebody must act on a run. Times are milliseconds since 1970 in UTC.

CREATE TABLE alerts (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  kind             TEXT NOT NULL,
  run_id           TEXT NOT NULL REFERENCES runs (id),
  attempt          INTEGER NOT NULL,
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
  UNIQUE (run_id, attempt, kind, cause)
) STRICT;

CREATE INDEX alerts_open ON alerts (run_id, seq) WHERE resolved_at_ms IS NULL;
