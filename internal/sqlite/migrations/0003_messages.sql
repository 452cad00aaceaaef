-- Messages and who gets them. Times are milliseconds since 1970 in UTC.

CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  sender        TEXT NOT NULL, -- the id of a run, user or agency
  target        TEXT NOT NULL, -- JSON object
  payload       TEXT NOT NULL, -- JSON object
  created_at_ms INTEGER NOT NULL,
  reply_to      TEXT NOT NULL
) STRICT;

CREATE INDEX messages_sender ON messages (sender, created_at_ms);

CREATE TABLE deliveries (
  message         INTEGER NOT NULL REFERENCES messages (seq),
  recipient       TEXT NOT NULL, -- the id of a run, user, or nothing when there was nobody
  delivered_at_ms INTEGER,
  acked_at_ms     INTEGER,
  dead            TEXT NOT NULL, -- why it is not delivered any more
  PRIMARY KEY (message, recipient)
) STRICT;

CREATE INDEX deliveries_waiting ON deliveries (recipient, message) WHERE acked_at_ms IS NULL AND dead = '';
