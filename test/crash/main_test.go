// Package crash_test kills agency's processes at every step of an operation, starts it again, and
// checks that nothing is lost, left over or reported wrongly.
package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"agency/test/fixture"
	"agency/test/forge"
)

// bin is the folder of the binary under test, which has kill points. Its folder old has one of
// another version.
var bin string

// whole reports whether the tests cover the whole matrix, not only the sample.
var whole = os.Getenv("AGENCY_CRASH") == "all"

// TestMain runs the tests, or is one of the programs of a fake forge.
func TestMain(m *testing.M) {
	if slices.Contains(forge.Programs, filepath.Base(os.Args[0])) {
		os.Exit(forge.Main())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agency-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(filepath.Join(dir, "agency"), "-tags", "killpoints"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := build(filepath.Join(dir, "old", "agency"), "-tags", "killpoints", "-ldflags", "-X main.version=v0.0.1-old"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	defer fixture.EndShared()
	status := m.Run()
	if whole {
		printTable(os.Stdout)
	}
	return status
}

func build(path string, args ...string) error {
	args = append(append([]string{"build", "-o", path}, args...), "agency/cmd/agency")
	cmd := exec.Command("go", args...)
	if !fixture.Race { // as releases are: containers need a static program
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build agency: %w: %s", err, out)
	}
	return nil
}
