-- How the agent of a conflicting entry was asked to solve it, and what a held entry waits for.
ALTER TABLE queue_entries ADD COLUMN asked TEXT NOT NULL DEFAULT '';
ALTER TABLE queue_entries ADD COLUMN held_for TEXT NOT NULL DEFAULT '';

-- Live agents had a message, and the queue showed how to ask the others.
UPDATE queue_entries SET asked = 'message' WHERE state = 'conflict';
