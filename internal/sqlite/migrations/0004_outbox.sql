-- Notices on their way to people. Times are milliseconds since 1970 in UTC.

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
