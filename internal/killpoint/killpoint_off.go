//go:build !killpoints

package killpoint

import "time"

// At marks a place. The compiler removes it from the program.
func At(...string) {}

// Now returns the time.
func Now() time.Time { return time.Now() }

// Boot returns the boot id of the kernel.
func Boot(id string) string { return id }
