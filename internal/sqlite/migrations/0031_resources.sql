-- How much of the machine each attempt of a run may use, as JSON; how the limits of an attempt are
-- enforced, and which it reached. Without limits they are empty.
ALTER TABLE runs ADD COLUMN resources TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN limit_use TEXT NOT NULL DEFAULT '';
