// Package killpoint is the places in agency where the crash matrix ends a process; without the build tag killpoints it is
// nothing.
package killpoint
