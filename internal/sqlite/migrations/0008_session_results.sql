-- What the agents of sessions came to, found out when they are final and kept when their worktrees are gone.

CREATE TABLE session_results (
  session INTEGER NOT NULL REFERENCES sessions (seq),
  agent   TEXT NOT NULL,
  result  TEXT NOT NULL, -- JSON object
  PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

-- All results of it are known, its report is written, and whoever should know was told.
ALTER TABLE sessions ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;

-- What people were told that it waits for, empty when it goes on, and how often they were.
ALTER TABLE sessions ADD COLUMN told TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN tellings INTEGER NOT NULL DEFAULT 0;

CREATE INDEX sessions_unreported ON sessions (seq) WHERE reported = 0 AND outside = 0;
