-- A run whose work is to land in a branch when its turn comes. The order is that of seq.
CREATE TABLE queue_entries (
  seq           INTEGER PRIMARY KEY,
  run_id        TEXT NOT NULL REFERENCES runs (id),
  repo          TEXT NOT NULL,
  target        TEXT NOT NULL, -- a branch, without refs/heads/
  source        TEXT NOT NULL, -- the commit that is to land
  state         TEXT NOT NULL CHECK (state IN
    ('queued', 'checking', 'ready', 'landing', 'conflict', 'held', 'landed', 'failed', 'dropped')),
  reason        TEXT NOT NULL,
  rounds        INTEGER NOT NULL, -- how often its agent was asked to solve a conflict
  approved      TEXT NOT NULL,    -- the source that a person approved; empty for none
  added_by      TEXT NOT NULL,    -- a run, or "user"
  landing       TEXT NOT NULL,    -- that brought it in; empty before
  added_at_ms   INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX queue_entries_run ON queue_entries (run_id, seq);
CREATE UNIQUE INDEX queue_entries_open ON queue_entries (repo, target, run_id)
  WHERE state NOT IN ('landed', 'failed', 'dropped');

-- The queue of one branch.
CREATE TABLE queues (
  repo   TEXT NOT NULL,
  target TEXT NOT NULL,
  paused INTEGER NOT NULL, -- by a person
  note   TEXT NOT NULL,    -- why nothing lands now; empty when nothing is in the way
  PRIMARY KEY (repo, target)
) STRICT, WITHOUT ROWID;

-- Landings that moved their target together, in one step, have the same ends of it.
ALTER TABLE landings ADD COLUMN move_from TEXT NOT NULL DEFAULT '';
ALTER TABLE landings ADD COLUMN move_to TEXT NOT NULL DEFAULT '';
UPDATE landings SET move_from = target_old, move_to = candidate;
