// Packages prints the agents of the registry, one a line: the program, and its npm package with the
// tested version.
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
