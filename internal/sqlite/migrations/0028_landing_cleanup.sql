-- Whether the run is still to be removed because the work has landed, as [landing] after = "gc" says.
ALTER TABLE landings ADD COLUMN cleanup INTEGER NOT NULL DEFAULT 0;
