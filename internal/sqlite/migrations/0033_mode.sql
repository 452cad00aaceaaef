-- How agency speaks with the agent of an attempt.
ALTER TABLE attempts ADD COLUMN mode TEXT NOT NULL DEFAULT 'terminal';
UPDATE attempts SET mode = 'headless' WHERE headless;
