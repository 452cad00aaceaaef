package sandbox

import "agency"

// supported reports whether this system has sandboxes with a file system of their own.
const supported = false

// etc is the folder of the system's settings, which is one of the systemFolders.
const etc = "/private/etc"

var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/opt", "/nix/store", "/System", etc,
	"/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Applications/Xcode.app",
	"/private/var/db/timezone", "/private/var/db/xcode_select_link", "/private/var/select",
}

// Enter returns the exit status of an error: on macOS no sandbox has a first program of agency's.
func Enter([]string) int { return agency.ExitError }

// onlyHere are the ways that only macOS has: none.
var onlyHere []way

// Workings are functions about processes that the first program of a container needs.
type Workings struct {
	SetMark     func(mark []string)
	HangupHelps func(pid int) bool
}

// First returns the exit status of an error, likewise.
func First(string, Workings) int { return agency.ExitError }

// Carry returns the exit status of an error, likewise.
func Carry(string, []string) int { return agency.ExitError }
