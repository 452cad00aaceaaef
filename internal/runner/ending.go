package runner

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/killpoint"
)

// ending ends what the runner left running, and returns the record of its end. By then the logs have the
// runner's last output, unless other processes keep its terminal or pipes open and never stop writing.
func (w *wrapper) ending(st status, endedBy agency.EndedBy, deadline time.Time) *agency.Exit {
	killpoint.At("wrapper.exited")
	exit := w.newExit()
	exit.PID = w.start.Runner.PID
	if w.speech != nil {
		var lost error
		if st, lost = w.exitOf(st); lost != nil {
			exit.ErrorCode, exit.Error = agency.CodeRunnerDisappeared, lost.Error()
		}
	}
	exit.ExitCode, exit.Signal = st.code()
	if exit.Error != "" {
		exit.ExitCode = agency.ExitError // the runner's own is unknown
	}
	exit.EndedBy = endedBy
	if w.speech != nil {
		w.speech.finish()
		w.doors.close()
	}
	if w.term != nil {
		w.term.runnerEnded()
	}
	leftovers := w.leftovers(st)
	if endedBy == "" {
		exit.EndedBy = agency.EndedByRunner
		exit.LeftBehind = leftovers
		deadline = time.Time{}
	}
	w.out.drain(st.alone)
	w.complete(exit)
	w.recordErr = writeExit(w.launch.AttemptDir, exit)
	killpoint.At("wrapper.recorded")
	if !st.alone {
		w.endLeftovers(deadline)
		w.out.drain(false)
	}
	killpoint.At("wrapper.alone")
	w.unlimit()
	// Only now: no process of an attempt that is recorded as ended may still change its worktree.
	w.client.ended(*exit)
	return exit
}

// leftovers returns how many processes a runner that has ended left running.
func (w *wrapper) leftovers(st status) int {
	if st.alone {
		return 0
	}
	tree, err := w.family.all()
	if err != nil {
		return 1 // at least: there are some, and the kernel cannot be asked how many
	}
	return len(tree)
}

// complete adds to the record of an end what else is known of the attempt: its logs, network and limits, and
// the note that says why it ended.
func (w *wrapper) complete(exit *agency.Exit) {
	exit.LogLost = w.out.lost.Load()
	exit.Network = w.network.use()
	note := readEndNote(w.launch.AttemptDir)
	w.limits.Look(killpoint.Now())
	w.limits.Add(note.Reached, killpoint.Now())
	exit.Limits = w.limits.Use()
	if (exit.ExitCode != 0 || exit.EndedBy == agency.EndedByProtocol) && exit.Error == "" {
		exit.ErrorCode, exit.Error = note.Code, note.Words
	}
}

// unlimit removes what enforced the limits. The daemon, or agency doctor, names what it cannot remove.
func (w *wrapper) unlimit() {
	if err := w.limits.End(); err != nil {
		printNote(w.stdout, "warning: "+err.Error())
	}
	killpoint.At("wrapper.unlimited")
}

// endLeftovers ends what the runner left running. After a stop its processes have already had TERM
// and keep the rest of their grace, until the deadline. A forced stop ends them at once.
func (w *wrapper) endLeftovers(deadline time.Time) {
	if most := time.Now().Add(leftoverGrace); deadline.IsZero() || deadline.After(most) {
		deadline = most
	}
	giveUp := deadline.Add(drainLimit)
	for asked, empty := false, 0; ; {
		tree, err := w.family.all()
		if err == nil && len(tree) == 0 {
			empty++
		} else {
			empty = 0
		}
		now := time.Now()
		switch {
		case empty == emptyLooks || now.After(giveUp):
			return
		case now.After(deadline):
			signalAll(tree, unix.SIGKILL)
		case !asked && err == nil:
			asked = true
			signalAll(tree, unix.SIGTERM, unix.SIGCONT)
		}
		select {
		case <-time.After(killEvery):
		case req := <-w.stops:
			close(req.sent)
			if req.force {
				deadline = now
			}
		case sig := <-w.signals:
			if sig == unix.SIGTERM {
				deadline = now
			}
		}
	}
}

// keepRecording tries again and again to write a record that the disk did not take, until the disk or the
// daemon has it, or TERM or HUP arrives. A folder that is gone needs no record.
func (w *wrapper) keepRecording(exit *agency.Exit) {
	for w.recordErr != nil && !errors.Is(w.recordErr, fs.ErrNotExist) {
		select {
		case <-time.After(500 * time.Millisecond):
			w.recordErr = writeExit(w.launch.AttemptDir, exit)
		case <-w.client.exitTaken:
			return
		case sig := <-w.signals:
			if sig == unix.SIGTERM || sig == unix.SIGHUP {
				return
			}
		}
	}
}
