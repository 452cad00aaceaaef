-- The removed run whose work the run of an entry goes on with; empty for none.
ALTER TABLE queue_entries ADD COLUMN instead_of TEXT NOT NULL DEFAULT '';

CREATE INDEX queue_entries_instead_of ON queue_entries (instead_of) WHERE instead_of <> '';
