-- The ports of the container of an attempt that the machine reaches, as JSON. Without any it is empty.
ALTER TABLE attempts ADD COLUMN ports TEXT NOT NULL DEFAULT '';
