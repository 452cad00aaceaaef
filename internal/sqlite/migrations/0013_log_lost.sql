-- Bytes that are missing in the attempt's log, because the disk did not take them.
ALTER TABLE attempts ADD COLUMN log_lost INTEGER NOT NULL DEFAULT 0;
