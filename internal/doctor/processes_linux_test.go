package doctor_test

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
)

// The wrapper of an attempt reports the end of its runner before it ends itself: only one that
// lives on is an orphan.
func TestLeavingWrapper(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!") // no child of this process: these are left out
	cmd.Env = append(cmd.Environ(), "AGENCY_RUN_ID=r_leaving", "AGENCY_ATTEMPT=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	ended := time.Now()
	m := &machine{home: t.TempDir(), runs: []agency.Run{{ID: "r_leaving", Handle: "leaving", Attempt: agency.Attempt{
		Number: 1, State: agency.Completed, Wrapper: &agency.Process{PID: pid}, EndedAt: &ended,
	}}}}
	if found := m.look(t); strings.Contains(found, "orphan process") {
		t.Errorf("a wrapper at its last steps is called an orphan:\n%s", found)
	}
	ended = ended.Add(-time.Minute)
	if found := m.look(t); !strings.Contains(found, "orphan process") || !strings.Contains(found, strconv.Itoa(pid)) {
		t.Errorf("a wrapper that does not end is not named:\n%s", found)
	}
}
