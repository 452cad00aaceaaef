-- The image of the container of an attempt, as JSON. Without a container it is empty.
ALTER TABLE attempts ADD COLUMN image TEXT NOT NULL DEFAULT '';
