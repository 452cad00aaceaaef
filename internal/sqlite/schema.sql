-- Made from migrations/ by go test ./internal/sqlite -run SchemaOfANewFile -update.

CREATE TABLE repos (
  fingerprint TEXT NOT NULL PRIMARY KEY,
  root        TEXT NOT NULL,
  common_dir  TEXT NOT NULL,
  seen_at_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX repos_root ON repos (root);

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
  flag TEXT NOT NULL,
  attempt         INTEGER NOT NULL -- number of the newest attempt
, preset TEXT NOT NULL DEFAULT '', stuck_intervals INTEGER NOT NULL DEFAULT 0, git_config TEXT NOT NULL DEFAULT '', git_programs TEXT NOT NULL DEFAULT '', removing TEXT NOT NULL DEFAULT '', changes TEXT NOT NULL DEFAULT '', pr TEXT NOT NULL DEFAULT '', git_remotes TEXT NOT NULL DEFAULT '', sandbox TEXT NOT NULL DEFAULT 'worktree', network TEXT NOT NULL DEFAULT 'full', resources TEXT NOT NULL DEFAULT '') STRICT;

CREATE UNIQUE INDEX runs_kept_name ON runs (name) WHERE removed_at_ms IS NULL AND name <> '';

CREATE UNIQUE INDEX runs_kept_branch ON runs (repo, branch) WHERE removed_at_ms IS NULL;

CREATE INDEX runs_name ON runs (name) WHERE name <> '';

CREATE INDEX runs_kept ON runs (seq) WHERE removed_at_ms IS NULL;

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
  agent_state            TEXT, -- JSON object
  token_hash           TEXT NOT NULL DEFAULT '', restarting INTEGER NOT NULL DEFAULT 0, log_lost INTEGER NOT NULL DEFAULT 0, network_use TEXT NOT NULL DEFAULT '', limit_use TEXT NOT NULL DEFAULT '', image TEXT NOT NULL DEFAULT '', mode TEXT NOT NULL DEFAULT 'terminal', ports TEXT NOT NULL DEFAULT '',
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

CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)
BEGIN
  SELECT raise(ABORT, 'events are append-only');
END;

CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  sender        TEXT NOT NULL, -- the id of a run, user or agency
  target        TEXT NOT NULL, -- JSON object
  payload       TEXT NOT NULL, -- JSON object
  created_at_ms INTEGER NOT NULL,
  reply_to      TEXT NOT NULL
) STRICT;

CREATE INDEX messages_sender ON messages (sender, created_at_ms);

CREATE TABLE deliveries (
  message         INTEGER NOT NULL REFERENCES messages (seq),
  recipient       TEXT NOT NULL, -- the id of a run, user, or nothing when there was nobody
  delivered_at_ms INTEGER,
  acked_at_ms     INTEGER,
  dead            TEXT NOT NULL, -- why it is not delivered any more
  PRIMARY KEY (message, recipient)
) STRICT;

CREATE INDEX deliveries_waiting ON deliveries (recipient, message) WHERE acked_at_ms IS NULL AND dead = '';

CREATE TABLE outbox (
  seq          INTEGER PRIMARY KEY,
  notice_id    TEXT NOT NULL,
  channel      TEXT NOT NULL,
  notice       TEXT NOT NULL, -- JSON object
  tries        INTEGER NOT NULL,
  due_at_ms    INTEGER NOT NULL, -- the next try
  sent_at_ms   INTEGER,
  failed_at_ms INTEGER, -- the last try that failed
  error        TEXT NOT NULL, -- of that try
  dead_at_ms   INTEGER, -- not tried any more
  UNIQUE (notice_id, channel)
) STRICT;

CREATE INDEX outbox_waiting ON outbox (channel, due_at_ms) WHERE sent_at_ms IS NULL AND dead_at_ms IS NULL;

CREATE TABLE timers (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT, -- one that replaces another of its name has a later one
  name          TEXT NOT NULL UNIQUE,
  run_id        TEXT NOT NULL REFERENCES runs (id),
  owner         TEXT NOT NULL, -- the id of a run, or user
  message       TEXT NOT NULL,
  interval_ms   INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  next_at_ms    INTEGER NOT NULL,
  ticked_at_ms  INTEGER,
  ticks         INTEGER NOT NULL,
  sent          INTEGER NOT NULL,
  skipped       INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  outcome       TEXT NOT NULL, -- of the last tick
  stopped_at_ms INTEGER,
  stop_reason   TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT, -- one that is removed leaves its place empty
  id              TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  source          TEXT NOT NULL,
  source_file     TEXT NOT NULL,
  external         INTEGER NOT NULL,
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
, reported INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX sessions_name ON sessions (name) WHERE name <> '';

CREATE INDEX sessions_repo ON sessions (repo, seq);

CREATE INDEX sessions_live ON sessions (seq) WHERE status = 'running';

CREATE INDEX sessions_unfiled ON sessions (seq) WHERE filed = 0;

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
  extra           TEXT, waits INTEGER NOT NULL DEFAULT 0, stopping INTEGER NOT NULL DEFAULT 0, stop_reason TEXT NOT NULL DEFAULT '', land_state TEXT NOT NULL DEFAULT '', land_note TEXT NOT NULL DEFAULT '', -- JSON object
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_agents_run ON session_agents (run) WHERE run <> '';

CREATE TABLE session_results (
  session INTEGER NOT NULL REFERENCES sessions (seq),
  agent   TEXT NOT NULL,
  result  TEXT NOT NULL, -- JSON object
  PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_unreported ON sessions (seq) WHERE reported = 0 AND external = 0;

CREATE TABLE removed_sessions (
  id         TEXT NOT NULL PRIMARY KEY,
  root       TEXT NOT NULL, -- of the repository
  status_dir TEXT NOT NULL,
  dir        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "alerts" (
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
  notify_count             INTEGER NOT NULL,
  level            INTEGER NOT NULL,
  notified_at_ms       INTEGER,
  recipients       TEXT NOT NULL, -- JSON array
  CHECK (run_id IS NULL OR session IS NULL),
  UNIQUE (run_id, attempt, kind, cause)
) STRICT;

CREATE INDEX alerts_open ON alerts (run_id, seq) WHERE resolved_at_ms IS NULL;

CREATE UNIQUE INDEX alerts_session_open ON alerts (session, kind, cause) WHERE session IS NOT NULL AND resolved_at_ms IS NULL;

CREATE UNIQUE INDEX alerts_session_failed ON alerts (session) WHERE kind = 'session.failed';

CREATE UNIQUE INDEX alerts_host_open ON alerts (kind, cause) WHERE run_id IS NULL AND session IS NULL AND resolved_at_ms IS NULL;

CREATE TABLE landings (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  run_id        TEXT NOT NULL REFERENCES runs (id),
  target        TEXT NOT NULL, -- a branch, without refs/heads/
  method        TEXT NOT NULL,
  source        TEXT NOT NULL, -- the commit that was brought in
  target_old    TEXT NOT NULL, -- where the target stood
  candidate     TEXT NOT NULL, -- what the target becomes
  worktree      TEXT NOT NULL, -- that has the target checked out; empty when none has
  state         TEXT NOT NULL CHECK (state IN ('moving', 'landed', 'failed', 'undoing', 'undone')),
  error         TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  ended_at_ms   INTEGER
, move_from TEXT NOT NULL DEFAULT '', move_to TEXT NOT NULL DEFAULT '', cleanup INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX landings_run ON landings (run_id, seq);

CREATE INDEX landings_open ON landings (seq) WHERE state IN ('moving', 'undoing');

CREATE TABLE checks (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  repo        TEXT NOT NULL,
  tree        TEXT NOT NULL,
  check_hash  TEXT NOT NULL, -- of the check and of the setup before it
  env_hash    TEXT NOT NULL, -- of the environment that the check got, and of the machine
  name        TEXT NOT NULL,
  verdict     TEXT NOT NULL CHECK (verdict IN ('pass', 'fail', 'timeout', 'broken')),
  reason      TEXT NOT NULL,
  runs        INTEGER NOT NULL,
  commit_id   TEXT NOT NULL, -- the commit that was checked
  log         TEXT NOT NULL,
  began_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX checks_key ON checks (repo, tree, check_hash, env_hash, seq);

CREATE TABLE run_checks (
  run_id         TEXT NOT NULL REFERENCES runs (id),
  name           TEXT NOT NULL,
  check_seq      INTEGER NOT NULL REFERENCES checks (seq),
  source         TEXT NOT NULL, -- the commit that was checked for the run
  target         TEXT NOT NULL,
  merged         INTEGER NOT NULL,
  cached         INTEGER NOT NULL, -- the verdict was known before
  verified_at_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE comments (
  run_id        TEXT NOT NULL REFERENCES runs (id),
  number        INTEGER NOT NULL,
  file          TEXT NOT NULL,
  side          TEXT NOT NULL CHECK (side IN ('new', 'old')),
  line          INTEGER NOT NULL,
  last          INTEGER NOT NULL,
  body          TEXT NOT NULL,
  quote         TEXT NOT NULL, -- the beginning of the lines
  hash          TEXT NOT NULL, -- of the lines
  revision      TEXT NOT NULL, -- the tree that they are from
  state         TEXT NOT NULL CHECK (state IN ('open', 'sending', 'sent', 'discarded')),
  created_at_ms INTEGER NOT NULL,
  sent_at_ms    INTEGER,
  PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
  repo   TEXT NOT NULL,
  target TEXT NOT NULL,
  paused INTEGER NOT NULL, -- by a person
  note   TEXT NOT NULL,    -- why nothing lands now; empty when nothing is in the way
  PRIMARY KEY (repo, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE pushes (
  seq       INTEGER PRIMARY KEY,
  run_id    TEXT NOT NULL REFERENCES runs (id),
  url       TEXT NOT NULL, -- of the remote, without a password
  branch    TEXT NOT NULL, -- on the remote, without refs/heads/
  commit_id TEXT NOT NULL,
  created   INTEGER NOT NULL, -- the remote did not have the branch before
  done      INTEGER NOT NULL, -- the remote was seen to have the commit
  at_ms     INTEGER NOT NULL
) STRICT;

CREATE INDEX pushes_run ON pushes (run_id, seq);

CREATE TABLE "queue_entries" (
  seq           INTEGER PRIMARY KEY,
  run_id        TEXT NOT NULL REFERENCES runs (id),
  repo          TEXT NOT NULL,
  target        TEXT NOT NULL, -- a branch, without refs/heads/
  source        TEXT NOT NULL, -- the commit that is to land
  state         TEXT NOT NULL CHECK (state IN
    ('queued', 'checking', 'ready', 'landing', 'conflict', 'fixing', 'held', 'landed', 'failed', 'dropped')),
  reason        TEXT NOT NULL,
  rounds        INTEGER NOT NULL, -- how often its agent was asked to mend its work
  approved      TEXT NOT NULL,    -- the source that a person approved; empty for none
  added_by      TEXT NOT NULL,    -- a run, or "user"
  landing       TEXT NOT NULL,    -- that brought it in; empty before
  added_at_ms   INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  asked         TEXT NOT NULL DEFAULT '', -- how its agent was asked
  held_for      TEXT NOT NULL DEFAULT ''
, instead_of TEXT NOT NULL DEFAULT '') STRICT;

CREATE INDEX queue_entries_run ON queue_entries (run_id, seq);

CREATE UNIQUE INDEX queue_entries_open ON queue_entries (repo, target, run_id)
  WHERE state NOT IN ('landed', 'failed', 'dropped');

CREATE INDEX queue_entries_instead_of ON queue_entries (instead_of) WHERE instead_of <> '';

CREATE TABLE reviewed (
  run_id TEXT NOT NULL REFERENCES runs (id),
  path   TEXT NOT NULL,
  object TEXT NOT NULL, -- git's name of the content
  at_ms  INTEGER NOT NULL,
  PRIMARY KEY (run_id, path, object)
) STRICT, WITHOUT ROWID;

CREATE TABLE led_runs (
  run      TEXT NOT NULL PRIMARY KEY, -- drawn before the run is made, so it may name none
  until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
