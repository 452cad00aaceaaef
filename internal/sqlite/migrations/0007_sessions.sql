-- Sessions and their agents. Times are milliseconds since 1970 in UTC.

CREATE TABLE sessions (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT, -- one that is removed leaves its place empty
  id              TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  source          TEXT NOT NULL,
  source_file     TEXT NOT NULL,
  outside         INTEGER NOT NULL,
  repo            TEXT NOT NULL REFERENCES repos (fingerprint),
  status          TEXT NOT NULL CHECK (status IN ('running', 'complete', 'failed', 'cancelled')),
  -- How many agents there are of each status. Kept with each change of an agent, so that nobody has to count.
  queued          INTEGER NOT NULL CHECK (queued >= 0),
  running         INTEGER NOT NULL CHECK (running >= 0),
  complete        INTEGER NOT NULL CHECK (complete >= 0),
  failed          INTEGER NOT NULL CHECK (failed >= 0),
  cancelled       INTEGER NOT NULL CHECK (cancelled >= 0),
  status_dir      TEXT NOT NULL,
  dir             TEXT NOT NULL,
  plan_path       TEXT NOT NULL,
  plan_hash       TEXT NOT NULL,
  max_parallel    INTEGER NOT NULL,
  paused          TEXT NOT NULL,
  cancel_at_ms    INTEGER,
  retry_of        TEXT NOT NULL,
  owner           TEXT NOT NULL, -- the id of a run, or user
  config          TEXT NOT NULL,
  started_at_ms   INTEGER NOT NULL,
  updated_at_ms   INTEGER NOT NULL, -- grows with every change of the session or of an agent
  completed_at_ms INTEGER,
  filed           INTEGER NOT NULL DEFAULT 0, -- it is settled, and its status file says so
  extra           TEXT -- JSON object
) STRICT;

CREATE INDEX sessions_name ON sessions (name) WHERE name <> '';
CREATE INDEX sessions_repo ON sessions (repo, seq);
CREATE INDEX sessions_live ON sessions (seq) WHERE status = 'running';
CREATE INDEX sessions_unfiled ON sessions (seq) WHERE filed = 0;

-- The plan apart from the record: it holds all prompts.
CREATE TABLE session_plans (
  session INTEGER NOT NULL PRIMARY KEY REFERENCES sessions (seq),
  plan    BLOB NOT NULL
) STRICT;

CREATE TABLE session_agents (
  session         INTEGER NOT NULL REFERENCES sessions (seq),
  id              TEXT NOT NULL,
  position        INTEGER NOT NULL,
  name            TEXT NOT NULL,
  prompt_path     TEXT NOT NULL,
  wave            INTEGER NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('queued', 'running', 'complete', 'failed', 'cancelled')),
  started_at_ms   INTEGER,
  completed_at_ms INTEGER,
  exit_code       INTEGER,
  pid             INTEGER,
  log_file        TEXT NOT NULL,
  model           TEXT NOT NULL,
  error           TEXT NOT NULL,
  run             TEXT NOT NULL, -- drawn before the run is made, so it may name none yet
  tries           INTEGER NOT NULL,
  losses          INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  not_before_ms   INTEGER,
  updated_at_ms   INTEGER NOT NULL, -- the session's at the newest change
  absent          TEXT NOT NULL, -- JSON array
  extra           TEXT, -- JSON object
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_agents_run ON session_agents (run) WHERE run <> '';
