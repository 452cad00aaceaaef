-- Timers that write to runs. Times are milliseconds since 1970 in UTC.

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
