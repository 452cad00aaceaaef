// Package killpoint is what the crash tests do to agency from outside: they end a process at a named place, set its clock, and
// make it believe in a reboot. Without the build tag killpoints it is nothing.
package killpoint
