//go:build !killpoints

package killpoint

// At marks a place. Nothing of it is left in the program.
func At(...string) {}
