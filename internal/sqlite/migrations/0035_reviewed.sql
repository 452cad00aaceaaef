-- The files of a run's work that the user has reviewed, each with the content that it had.
CREATE TABLE reviewed (
  run_id TEXT NOT NULL REFERENCES runs (id),
  path   TEXT NOT NULL,
  object TEXT NOT NULL, -- git's name of the content
  at_ms  INTEGER NOT NULL,
  PRIMARY KEY (run_id, path, object)
) STRICT, WITHOUT ROWID;
