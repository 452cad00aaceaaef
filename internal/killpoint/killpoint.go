// Package killpoint lets the crash tests act on agency from outside: they end a process at a named
// place, set its clock, and simulate a reboot. Without the build tag killpoints it does nothing.
package killpoint
