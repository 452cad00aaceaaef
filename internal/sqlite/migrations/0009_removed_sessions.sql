-- Sessions that are out of the record and whose status files are still to be removed.

CREATE TABLE removed_sessions (
  id         TEXT NOT NULL PRIMARY KEY,
  root       TEXT NOT NULL, -- of the repository
  status_dir TEXT NOT NULL,
  dir        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
