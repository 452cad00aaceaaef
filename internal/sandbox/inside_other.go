//go:build !linux

package sandbox

import "agency"

const supported = false

// Enter returns the exit status of an error: agency has sandboxes on Linux only.
func Enter([]string) int { return agency.ExitError }

// Try likewise.
func Try(string) int { return agency.ExitError }

// Workings is what the first program of a container needs to know of processes.
type Workings struct {
	SetMark     func(mark []string)
	HangupHelps func(pid int) bool
}

// First likewise.
func First(string, Workings) int { return agency.ExitError }

// Carry likewise.
func Carry(string, []string) int { return agency.ExitError }
