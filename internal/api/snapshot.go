package api

import (
	"agency"
)

// TakeSnapshotResponse holds what was saved; Snapshot is null when there was nothing to save.
type TakeSnapshotResponse struct {
	RunID    agency.RunID  `json:"run_id"`
	Snapshot *agency.Saved `json:"snapshot"`
}

// ListSnapshotsResponse holds the snapshots of a run, oldest first.
type ListSnapshotsResponse struct {
	RunID     agency.RunID      `json:"run_id"`
	Snapshots []agency.Snapshot `json:"snapshots"`
}

// SnapshotRequest names a snapshot of a run. Number 0 is the newest.
type SnapshotRequest struct {
	Run    string `json:"run"`
	Number int    `json:"number,omitempty"`
}

// ShowSnapshotResponse is a snapshot and the files in which it differs from the commit that the run
// began at.
type ShowSnapshotResponse struct {
	Snapshot   agency.Snapshot     `json:"snapshot"`
	BaseCommit string              `json:"base_commit"` // the commit that the run began at
	Changes    []agency.FileChange `json:"changes"`     // since then
}

// RestoreSnapshotRequest makes a branch at a snapshot. Without a name, agency chooses one.
type RestoreSnapshotRequest struct {
	Run    string `json:"run"`
	Number int    `json:"number,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// RestoreSnapshotResponse names the branch that was made.
type RestoreSnapshotResponse struct {
	Snapshot agency.Snapshot `json:"snapshot"`
	Branch   string          `json:"branch"`
}

// CollectRunsRequest selects what gc may remove. Without Apply, nothing is removed.
type CollectRunsRequest struct {
	OlderThanMS int64    `json:"older_than_ms,omitempty"`
	States      []string `json:"states,omitempty"` // completed, failed, killed; empty means all three
	Apply       bool     `json:"apply,omitempty"`
	// DeleteBranches also deletes the branches of the runs that it removes.
	DeleteBranches bool `json:"delete_branches,omitempty"`
}

// CollectRunsResponse holds every ended run that is not removed, and gc's decision about it.
type CollectRunsResponse struct {
	Runs []CollectedRun `json:"runs"`
	// Standbys are the worktrees that were made ahead of runs. With Apply they are removed.
	Standbys []agency.Standby `json:"standbys"`
	// CheckLogs is how many logs of checks are older than that and of no verdict that a run shows, and
	// CheckLogBytes is what they take on the disk. With Apply they are removed; the verdicts stay.
	CheckLogs     int   `json:"check_logs"`
	CheckLogBytes int64 `json:"check_log_bytes"`
}

// ListStandbysResponse holds the worktrees that were made ahead of runs.
type ListStandbysResponse struct {
	Standbys []agency.Standby `json:"standbys"`
}

// CollectedRun is one ended run. Reason is "removable", "removed", or why the run is kept.
type CollectedRun struct {
	RunID     agency.RunID `json:"run_id"`
	Ref       string       `json:"ref"`
	State     agency.State `json:"state"`
	Status    agency.Label `json:"status"`
	Repo      string       `json:"repo"`
	Removable bool         `json:"removable"`
	Reason    string       `json:"reason"`
	Bytes     int64        `json:"bytes"` // what its worktree takes on the disk, or took
}

// CheckDatabaseResponse is the answer for an intact database. A damaged one is E_DB_ERROR with its
// findings.
type CheckDatabaseResponse struct {
	Path string `json:"path,omitempty"`
}

// Rebuilt is the result of db rebuild. What is not in the folders of runs stays as in the database:
// events, messages, alerts, timers, sessions, trust.
type Rebuilt struct {
	Added   []string     `json:"added"`   // runs that the database did not have
	Updated []string     `json:"updated"` // runs of which the database had an older state
	Skipped []SkippedRun `json:"skipped"`
	Kept    string       `json:"kept"` // path of the old database; empty when there was none
}

// SkippedRun is the folder of a run that could not be read, or that conflicts with another run.
type SkippedRun struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// BackupDatabaseRequest names the file to write, which must not exist. Without a path, the file is
// written beside the database.
type BackupDatabaseRequest struct {
	Path string `json:"path,omitempty"`
}

// BackupDatabaseResponse names the file that was written.
type BackupDatabaseResponse struct {
	Path string `json:"path,omitempty"`
}
