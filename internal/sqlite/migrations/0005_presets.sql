-- What a run may have of its own: the preset that it was made with, and how patient the watchdog is with it.

ALTER TABLE runs ADD COLUMN preset TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN stuck_intervals INTEGER NOT NULL DEFAULT 0; -- 0 is as the configuration says
