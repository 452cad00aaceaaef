package api

// Holder is the process that holds a data root, or held it last: a daemon, or a command that
// restores the database. It may run without listening.
type Holder struct {
	PID       int // 0 when not recorded
	Doing     string
	Locked    bool // it still holds the data root
	Suspended bool // it is suspended, until it gets SIGCONT
}

// What a holder is doing, or was doing when it ended.
const (
	DoingStart   = "starting"
	DoingServe   = "running"
	DoingStop    = "stopping"
	DoingRestore = "restoring"
)

// Stopped reports whether the daemon was asked to stop, or a restore ran, and no other daemon has
// started since.
func (h Holder) Stopped() bool { return h.Doing == DoingStop || h.Doing == DoingRestore }
