package runner

import (
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// demand is the end of a runner as far as it was asked for. The first request begins the grace of
// the runner; after it, whatever of the family lives is killed.
type demand struct {
	family *family
	grace  time.Duration

	by       agency.EndedBy   // the first that asked; empty before that
	deadline time.Time        // the end of the grace
	kill     <-chan time.Time // when to kill next
}

// ask begins the end of the runner. When it has begun, force ends the grace.
func (d *demand) ask(by agency.EndedBy, force bool) {
	switch {
	case d.by == "":
		d.by, d.deadline = by, time.Now().Add(d.grace)
		d.family.terminate()
		d.kill = time.After(d.grace)
	case force:
		d.deadline = time.Now()
		d.kill = time.After(0)
	}
}

// killAll kills what lives of the family, which is repeated until the runner has ended.
func (d *demand) killAll() {
	signalAll(d.family.living(), unix.SIGKILL)
	d.kill = time.After(killEvery)
}
