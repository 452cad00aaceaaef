package api

import "agency"

// AddToQueueRequest adds runs to the landing queues of branches. It has runs, or a session.
type AddToQueueRequest struct {
	Runs    []string `json:"runs,omitempty"`    // names, handles or ids, in the order of landing
	Session string   `json:"session,omitempty"` // its complete agents whose work no other one has, in the order of the waves
	Into    string   `json:"into,omitempty"`    // the branch; default: as for a landing
	Approve bool     `json:"approve,omitempty"` // the user approves the work as it is now
	Dir     string   `json:"dir,omitempty"`     // where the client is, to find the session

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the checks
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// ListQueueRequest reads landing queues: those of the repository of a folder, or the entries of one
// run.
type ListQueueRequest struct {
	Run  string `json:"run,omitempty" jsonschema:"only this run, with what happened to it before; its name, handle or id"`
	Into string `json:"into,omitempty" jsonschema:"only the queue of this branch"`
	Dir  string `json:"dir,omitempty"` // a folder in the repository; empty is every repository
	All  bool   `json:"all,omitempty"` // also entries that have left their queue
}

// QueueItem is an entry with its place.
type QueueItem struct {
	Entry    agency.QueueEntry `json:"entry"`    // the record
	Position int               `json:"position"` // 1 is the next; 0 for one that waits for an agent or the user, or has left the queue
	Why      string            `json:"why"`      // why it is where it is, and what helps
}

// QueueResponse holds entries in the order of their queues, and the queues.
type QueueResponse struct {
	Entries []QueueItem    `json:"entries"` // in the order of their queues
	Queues  []agency.Queue `json:"queues"`  // those of the entries; of queue.pause also the named one
}

// ChangeQueueRequest changes entries of landing queues.
type ChangeQueueRequest struct {
	Change string   `json:"change"`         // hold, resume, retry or remove
	Runs   []string `json:"runs"`           // names, handles or ids
	Into   string   `json:"into,omitempty"` // the branch of the queue; default: any

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the checks
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// PauseQueueRequest stops a queue from landing anything, or has it continue.
type PauseQueueRequest struct {
	Dir    string `json:"dir"`              // a folder in the repository
	Into   string `json:"into,omitempty"`   // the branch; default: every queue of the repository that has entries
	Resume bool   `json:"resume,omitempty"` // resume it

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the checks
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}
