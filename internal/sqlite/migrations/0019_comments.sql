-- What the user says of lines of a run's work. A discarded comment keeps its number.
CREATE TABLE comments (
  run_id        TEXT NOT NULL REFERENCES runs (id),
  number        INTEGER NOT NULL,
  file          TEXT NOT NULL,
  side          TEXT NOT NULL CHECK (side IN ('new', 'old')),
  line          INTEGER NOT NULL,
  last          INTEGER NOT NULL,
  body          TEXT NOT NULL,
  quote         TEXT NOT NULL, -- the beginning of the lines
  hash          TEXT NOT NULL, -- of the lines
  revision      TEXT NOT NULL, -- the tree that they are from
  state         TEXT NOT NULL CHECK (state IN ('open', 'sending', 'sent', 'discarded')),
  created_at_ms INTEGER NOT NULL,
  sent_at_ms    INTEGER,
  PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;
