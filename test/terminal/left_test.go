package terminal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency/test/fixture"
)

// A test process that ends in the middle of a test, as at a timeout, leaves neither a daemon nor an
// agent.
func TestLeavesNothing(t *testing.T) {
	if os.Getenv("AGENCY_TEST_ENDS") != "" {
		f := fixture.New(t, bin)
		if r := f.Agency("run", "--name", "left", "--runner", "shell", "--prompt", "sleep 600"); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
		pids, _ := filepath.Glob(filepath.Join(f.Data, "runs/*/attempts/1/started.json"))
		fmt.Println("ROOT", f.Root, len(pids))
		os.Exit(3) // as a timeout does: nothing deferred runs
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLeavesNothing$")
	cmd.Env = append(os.Environ(), "AGENCY_TEST_ENDS="+bin)
	out, _ := cmd.CombinedOutput()
	_, root, ok := strings.Cut(string(out), "ROOT ")
	root, started, _ := strings.Cut(strings.TrimSpace(root), " ")
	if !ok || started != "1" {
		t.Fatalf("%s", out)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := os.Lstat(root)
		left := processes(root)
		if os.IsNotExist(err) && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left are %s (%v) and %v", root, err, left)
		}
	}
}

// processes returns the processes that name a path in their environment, where the kernel shows it.
func processes(path string) []string {
	found := []string{}
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, one := range all {
		if data, err := os.ReadFile(one); err == nil && strings.Contains(string(data), "ROOT="+path+"\x00") {
			found = append(found, one)
		}
	}
	return found
}
