package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Outside a sandbox the ways that change nothing are open, so that a refusal is the sandbox's.
func TestAttemptsSucceedOutside(t *testing.T) {
	t.Parallel()
	aim := target{Dir: t.TempDir(), Abstract: "@" + t.Name()}
	if err := os.WriteFile(filepath.Join(aim.Dir, secretFile), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	closeAll, err := aim.listen(t.Context())
	defer closeAll()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	aim.Process = other.Process.Pid
	// The others need root's rights, or would change this machine.
	needRights := map[string]bool{
		"write the system": true, "write the settings of the kernel": true, "mount a file system": true,
		"make a user namespace": true, "gain rights by a setuid program": true, "type into the terminal (TIOCSTI)": true,
	}
	tried := 0
	for _, a := range slices.Concat(everywhere, onlyHere) {
		if needRights[a.name] {
			continue
		}
		tried++
		if err := a.try(aim); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
	}
	if tried+len(needRights) != len(everywhere)+len(onlyHere) {
		t.Errorf("%d ways of %d were tried, %d need rights", tried, len(everywhere)+len(onlyHere), len(needRights))
	}
}
