-- Times are milliseconds since 1970 in UTC. Order is seq, everywhere; ids are names.

CREATE TABLE repos (
  fingerprint TEXT NOT NULL PRIMARY KEY,
  root        TEXT NOT NULL,
  common_dir  TEXT NOT NULL,
  seen_at_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX repos_root ON repos (root);

-- What users allowed repositories to do in new worktrees: hashes of what they were shown.
CREATE TABLE trust (
  repo          TEXT NOT NULL REFERENCES repos (fingerprint),
  hash          TEXT NOT NULL,
  trusted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (repo, hash)
) STRICT;

CREATE TABLE runs (
  seq             INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  handle          TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  type            TEXT NOT NULL,
  repo            TEXT NOT NULL REFERENCES repos (fingerprint),
  base_ref        TEXT NOT NULL,
  base_commit     TEXT NOT NULL,
  branch          TEXT NOT NULL,
  worktree_path   TEXT NOT NULL,
  run_dir         TEXT NOT NULL,
  runner_kind     TEXT NOT NULL,
  runner_name     TEXT NOT NULL,
  runner_args     TEXT NOT NULL, -- JSON array
  model           TEXT NOT NULL,
  tags            TEXT NOT NULL, -- JSON array
  owner           TEXT NOT NULL, -- the id of a run, or user
  max_minutes     INTEGER NOT NULL,
  stall_after_ms  INTEGER NOT NULL, -- 0 is as the configuration says
  config_hash     TEXT NOT NULL,
  host            TEXT NOT NULL,
  created_at_ms   INTEGER NOT NULL,
  updated_at_ms   INTEGER NOT NULL,
  removed_at_ms   INTEGER,
  merged_at_ms    INTEGER,
  abandoned       INTEGER NOT NULL,
  needs_attention TEXT NOT NULL,
  pr_number       INTEGER,
  attempt         INTEGER NOT NULL -- number of the newest attempt
) STRICT;

-- A name or a branch is free again once its run is removed.
CREATE UNIQUE INDEX runs_kept_name ON runs (name) WHERE removed_at_ms IS NULL AND name <> '';
CREATE UNIQUE INDEX runs_kept_branch ON runs (repo, branch) WHERE removed_at_ms IS NULL;
CREATE INDEX runs_name ON runs (name) WHERE name <> '';
CREATE INDEX runs_kept ON runs (seq) WHERE removed_at_ms IS NULL;

-- The request apart from the record: it holds the prompt, which can be large.
CREATE TABLE specs (
  run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
  spec   BLOB NOT NULL
) STRICT;

CREATE TABLE attempts (
  run_id               TEXT NOT NULL REFERENCES runs (id),
  number               INTEGER NOT NULL CHECK (number >= 1),
  state                TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'killed')),
  headless             INTEGER NOT NULL,
  conversation_id      TEXT NOT NULL,
  created_at_ms        INTEGER NOT NULL,
  started_at_ms        INTEGER,
  ended_at_ms          INTEGER,
  stop_requested_at_ms INTEGER,
  exit_code            INTEGER,
  signal               TEXT NOT NULL,
  ended_by             TEXT NOT NULL,
  error_code           TEXT NOT NULL,
  error                TEXT NOT NULL,
  tmux_pane            TEXT NOT NULL,
  wrapper              TEXT, -- process id, start ticks, boot id
  runner_process       TEXT, -- likewise
  contract             TEXT, -- JSON object
  contract_problem     TEXT NOT NULL,
  contract_at_ms       INTEGER,
  input_at_ms          INTEGER,
  situation            TEXT, -- JSON object
  token_hash           TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, number)
) STRICT;

CREATE INDEX attempts_live ON attempts (run_id, number) WHERE state IN ('queued', 'running');

CREATE TABLE steps (
  seq        INTEGER PRIMARY KEY,
  run_id     TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  name       TEXT NOT NULL,
  done_at_ms INTEGER,
  UNIQUE (run_id, attempt, name),
  FOREIGN KEY (run_id, attempt) REFERENCES attempts (run_id, number)
) STRICT;

CREATE TABLE events (
  seq     INTEGER PRIMARY KEY,
  at_ms   INTEGER NOT NULL,
  type    TEXT NOT NULL,
  run_id  TEXT REFERENCES runs (id), -- null when it belongs to no run
  attempt INTEGER NOT NULL,          -- 0 when it belongs to no attempt
  data    TEXT NOT NULL              -- JSON object
) STRICT;

CREATE INDEX events_run ON events (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

-- INSERT OR REPLACE removes the old row without the trigger above.
CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;
