-- How the agent of a run is kept apart from the machine. Earlier runs had a worktree and nothing more.
ALTER TABLE runs ADD COLUMN sandbox TEXT NOT NULL DEFAULT 'worktree';
ALTER TABLE runs ADD COLUMN network TEXT NOT NULL DEFAULT 'full';
