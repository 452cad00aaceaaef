-- An entry can wait for its agent to fix what a check found. SQLite cannot change a CHECK, so the table is made again.
CREATE TABLE queue_entries_new (
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
) STRICT;

INSERT INTO queue_entries_new SELECT * FROM queue_entries;
DROP TABLE queue_entries;
ALTER TABLE queue_entries_new RENAME TO queue_entries;

CREATE INDEX queue_entries_run ON queue_entries (run_id, seq);
CREATE UNIQUE INDEX queue_entries_open ON queue_entries (repo, target, run_id)
  WHERE state NOT IN ('landed', 'failed', 'dropped');
