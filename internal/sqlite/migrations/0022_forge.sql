-- The pull request of a run as JSON, as it was when it was last looked at; empty when there is none. Nothing could set the number.
ALTER TABLE runs DROP COLUMN pr_number;
ALTER TABLE runs ADD COLUMN pr TEXT NOT NULL DEFAULT '';

-- What a run recorded of where the remotes of its repository are.
ALTER TABLE runs ADD COLUMN git_remotes TEXT NOT NULL DEFAULT '';

-- What was pushed for runs. A row is written before the push, so that what a remote has is known as agency's own after a crash.
CREATE TABLE pushes (
  seq       INTEGER PRIMARY KEY,
  run_id    TEXT NOT NULL REFERENCES runs (id),
  url       TEXT NOT NULL, -- of the remote, without a password
  branch    TEXT NOT NULL, -- on the remote, without refs/heads/
  commit_id TEXT NOT NULL,
  created   INTEGER NOT NULL, -- the remote did not have the branch before
  done      INTEGER NOT NULL, -- the remote was seen to have the commit
  at_ms     INTEGER NOT NULL
) STRICT;

CREATE INDEX pushes_run ON pushes (run_id, seq);
