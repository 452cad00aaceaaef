package runner

import (
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// demand is the state of the requests to end a runner. The first request begins the grace of the runner;
// after the grace, all of the family that still lives is killed.
type demand struct {
	family *family
	grace  time.Duration

	by       agency.EndedBy   // who or what asked first; empty before that
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
