-- The verdict of a check on one tree. The newest one for a key holds.
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

-- The newest verdict of each check on the work of a run.
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
