-- What a run recorded of its repository's git configuration when it was made.
ALTER TABLE runs ADD COLUMN git_config TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN git_programs TEXT NOT NULL DEFAULT '';
