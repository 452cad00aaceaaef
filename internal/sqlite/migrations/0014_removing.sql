-- What a removal that is under way was asked for, as JSON; empty when there is none.
ALTER TABLE runs ADD COLUMN removing TEXT NOT NULL DEFAULT '';
