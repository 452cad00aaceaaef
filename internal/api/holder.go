package api

// Holder is the process that has a data root to itself, or had it last: a daemon, or a command that restores the database. It can be
// there without listening.
type Holder struct {
	PID       int // 0 when it has not said
	Doing     string
	Locked    bool // it is still there
	Suspended bool // it is there and stands still, until it is sent SIGCONT
}

// What a holder is doing, or was doing when it ended.
const (
	DoingStart   = "starting"
	DoingServe   = "running"
	DoingStop    = "stopping"
	DoingRestore = "restoring"
)

// Stopped says that there is no daemon because it was told to end, and that no other one has begun since.
func (h Holder) Stopped() bool { return h.Doing == DoingStop || h.Doing == DoingRestore }
