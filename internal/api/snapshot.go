package api

import (
	"agency"
)

// TakeSnapshotResponse holds what was saved.
type TakeSnapshotResponse struct {
	RunID    agency.RunID  `json:"run_id"`   // the id of the run
	Snapshot *agency.Saved `json:"snapshot"` // what was saved; null when there was nothing to save
}

// ListSnapshotsResponse holds the snapshots of a run, oldest first.
type ListSnapshotsResponse struct {
	RunID     agency.RunID      `json:"run_id"`    // the id of the run
	Snapshots []agency.Snapshot `json:"snapshots"` // the oldest first
}

// SnapshotRequest names a snapshot of a run.
type SnapshotRequest struct {
	Run    string `json:"run"`              // its name, handle or id
	Number int    `json:"number,omitempty"` // of the snapshot, from 1; 0 means the newest
}

// ShowSnapshotResponse is a snapshot and the files in which it differs from the commit that the run
// began at.
type ShowSnapshotResponse struct {
	Snapshot   agency.Snapshot     `json:"snapshot"`    // the snapshot
	BaseCommit string              `json:"base_commit"` // the commit that the run began at
	Changes    []agency.FileChange `json:"changes"`     // the files in which it differs from that commit
}

// RestoreSnapshotRequest makes a branch at a snapshot.
type RestoreSnapshotRequest struct {
	Run    string `json:"run"`              // its name, handle or id
	Number int    `json:"number,omitempty"` // of the snapshot, from 1; 0 means the newest
	Branch string `json:"branch,omitempty"` // the branch to make; empty lets agency choose a name
}

// RestoreSnapshotResponse names the branch that was made.
type RestoreSnapshotResponse struct {
	Snapshot agency.Snapshot `json:"snapshot"` // what the branch begins at
	Branch   string          `json:"branch"`   // the branch that was made
}

// CollectRunsRequest selects what gc may remove.
type CollectRunsRequest struct {
	OlderThanMS int64    `json:"older_than_ms,omitempty"` // keep the runs that ended less than so long ago, in milliseconds
	States      []string `json:"states,omitempty"`        // completed, failed, killed; empty means all three
	Apply       bool     `json:"apply,omitempty"`         // remove what can be removed; else only list it
	// DeleteBranches also deletes the branches of the runs that it removes.
	DeleteBranches bool `json:"delete_branches,omitempty"`
}

// CollectRunsResponse holds every ended run that is not removed, and gc's decision about it.
type CollectRunsResponse struct {
	Runs []CollectedRun `json:"runs"` // the ended runs of these states that were not removed before, and the decision about each
	// Standbys are the worktrees that were made ahead of runs. With apply they are removed.
	Standbys []agency.Standby `json:"standbys"`
	// CheckLogs is how many logs of checks are older than older_than_ms, and at least a day, and
	// belong to no verdict that a run shows. With apply they are removed; the verdicts stay.
	CheckLogs     int   `json:"check_logs"`
	CheckLogBytes int64 `json:"check_log_bytes"` // what those logs take on the disk, in bytes
}

// ListStandbysResponse holds the worktrees that were made ahead of runs.
type ListStandbysResponse struct {
	Standbys []agency.Standby `json:"standbys"` // of all repositories
}

// CollectedRun is one ended run, and gc's decision about it.
type CollectedRun struct {
	RunID     agency.RunID `json:"run_id"`    // the id of the run
	Ref       string       `json:"ref"`       // its name, or else its handle
	State     agency.State `json:"state"`     // of its newest attempt
	Status    agency.Label `json:"status"`    // the word that agency ls shows
	Repo      string       `json:"repo"`      // the root of its repository
	Removable bool         `json:"removable"` // it can be removed, or was, and nothing is lost
	Reason    string       `json:"reason"`    // removable, removed, or why it is kept
	Bytes     int64        `json:"bytes"`     // what its worktree takes on the disk, or took, in bytes
}

// CheckDatabaseResponse is the answer for an intact database. A damaged one is E_DB_ERROR with its
// findings.
type CheckDatabaseResponse struct {
	Path string `json:"path,omitempty"` // of the database
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

// BackupDatabaseRequest names the file to write.
type BackupDatabaseRequest struct {
	Path string `json:"path,omitempty"` // the file to write, which must not exist; absolute; empty means one beside the database
}

// BackupDatabaseResponse names the file that was written.
type BackupDatabaseResponse struct {
	Path string `json:"path,omitempty"` // the file that was written
}
