//go:build !killpoints

package killpoint

import "time"

// At marks a place. Nothing of it is left in the program.
func At(...string) {}

// Now is the time.
func Now() time.Time { return time.Now() }

// Boot is the boot id that the kernel gave.
func Boot(id string) string { return id }
