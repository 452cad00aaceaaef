-- A landing brings the work of a run into a branch. Its refs are below refs/agency/landings/ID/.
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
) STRICT;

CREATE INDEX landings_run ON landings (run_id, seq);
CREATE INDEX landings_open ON landings (seq) WHERE state IN ('moving', 'undoing');
