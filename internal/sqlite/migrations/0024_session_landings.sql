-- What a session did to land the work of an agent, as its plan says; empty before.
ALTER TABLE session_agents ADD COLUMN land_state TEXT NOT NULL DEFAULT '';
ALTER TABLE session_agents ADD COLUMN land_note TEXT NOT NULL DEFAULT '';
