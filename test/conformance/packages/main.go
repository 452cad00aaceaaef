// Packages prints the agents that agency knows, one a line: its program, and its package of npm with the tested version.
package main

import (
	"fmt"

	"agency/internal/harness"
)

func main() {
	for _, a := range harness.Agents() {
		fmt.Printf("%s %s@%s\n", a.Program, a.Package, a.Version)
	}
}
