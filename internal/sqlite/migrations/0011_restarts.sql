-- The stop of the attempt makes place for the next one.
ALTER TABLE attempts ADD COLUMN restarting INTEGER NOT NULL DEFAULT 0;

-- Starts in a row that failed by no fault of the agent's; the attempt that the session itself ends, and why.
ALTER TABLE session_agents ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_agents ADD COLUMN stopping INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_agents ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';
