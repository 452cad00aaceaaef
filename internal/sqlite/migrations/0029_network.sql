-- What an attempt did with the network allow, as JSON. Without that it is empty.
ALTER TABLE attempts ADD COLUMN network_use TEXT NOT NULL DEFAULT '';
