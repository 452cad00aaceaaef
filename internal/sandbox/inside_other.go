//go:build !linux

package sandbox

import "agency"

const supported = false

// Enter returns the exit status of an error: agency has sandboxes on Linux only.
func Enter([]string) int { return agency.ExitError }

// Try likewise.
func Try(string) int { return agency.ExitError }
