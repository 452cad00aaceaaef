-- The flag of a run as JSON, with its reason, who set it and when; empty when there is none. Nothing could set one before.
ALTER TABLE runs RENAME COLUMN needs_attention TO flag;
