package agency

import "fmt"

// AlertHostDisk is the kind of alerts about the machine: a disk that agency writes on is nearly full. It belongs to no run and no session.
const AlertHostDisk AlertKind = "host.disk"

// HostAlertKinds are all kinds about the machine.
func HostAlertKinds() []AlertKind { return []AlertKind{AlertHostDisk} }

// Disk is how full a disk is that agency writes on.
type Disk struct {
	Path  string // the folder of agency's that is on it
	Free  int64  // bytes that agency may still write
	Least int64  // bytes that must be free
}

// Low reports whether the disk has too little room. One that was low is so until it has a quarter more than it must have, so that a
// few files more or less are not an alert each.
func (d *Disk) Low(was bool) bool {
	least := d.Least
	if was {
		least += least / 4
	}
	return d.Free < least
}

// Words say how full the disk is.
func (d *Disk) Words() string {
	return fmt.Sprintf("%d MiB left, and %d MiB must be free, on the disk of %s", d.Free>>20, d.Least>>20, d.Path)
}
