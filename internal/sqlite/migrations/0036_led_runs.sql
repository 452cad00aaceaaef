-- Until when removed sessions led the runs of their agents: an end before that was the session's own
-- matter.

CREATE TABLE led_runs (
  run      TEXT NOT NULL PRIMARY KEY, -- drawn before the run is made, so it may name none
  until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
