-- The columns have the names by which the code and JSON know what is in them.
ALTER TABLE alerts RENAME COLUMN told TO notify_count;
ALTER TABLE alerts RENAME COLUMN told_at_ms TO notified_at_ms;
ALTER TABLE attempts RENAME COLUMN situation TO agent_state;
ALTER TABLE sessions RENAME COLUMN outside TO external;
