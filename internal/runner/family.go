package runner

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agency"
)

// family is what the wrapper has to end: the runner and everything that it started, without what
// serves other runs.
type family struct {
	launch  *agency.Launch
	runner  *agency.Process // set when the runner starts
	adopted bool            // an earlier wrapper started the runner
	// tmux is the socket of the tmux server, as the daemon last sent it; nil before that.
	tmux atomic.Pointer[string]
}

// all returns the processes that the wrapper has to end.
func (f *family) all() ([]int, error) {
	serving := Serving{Lock: f.launch.Lock}
	if socket := f.tmux.Load(); socket != nil {
		serving.Tmux = *socket
	}
	if f.adopted {
		return leftBehind(Remains{Root: *f.runner, Mark: agency.AttemptMark(f.launch.RunID, f.launch.Attempt)}, serving)
	}
	return treeOf(os.Getpid(), f.runner.PID, serving)
}

// living returns what to end while the runner lives: the whole family, or the runner alone when the
// kernel cannot be asked for the others, which are then ended after the runner.
func (f *family) living() []int {
	all, err := f.all()
	if err != nil {
		return []int{f.runner.PID}
	}
	return all
}

// terminate asks the whole family to end. A session leader on a terminal gets HUP as well when it
// treats HUP as the end of its terminal, as interactive shells do, which ignore TERM. One that
// would simply die of HUP does not get it, since TERM may let it clean up. CONT wakes suspended
// processes.
func (f *family) terminate() {
	all := f.living()
	signalAll(all, unix.SIGTERM)
	if leader := f.leader(); f.launch.HasTerminal() && HangupHelps(leader) {
		_ = unix.Kill(leader, unix.SIGHUP)
	}
	signalAll(all, unix.SIGCONT)
}

// leader returns the process of the agent's own program. In a sandbox it is the child of the
// child of the runner, which is bubblewrap.
func (f *family) leader() int {
	pid := f.runner.PID
	if !f.launch.Confined {
		return pid
	}
	all, err := processes()
	if err != nil {
		return pid
	}
	for range 2 {
		for _, p := range all {
			if p.ppid == pid {
				pid = p.pid
				break
			}
		}
	}
	return pid
}
