package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agency"
)

// BenchmarkHook measures how long an agent waits at each of its events: a process that starts,
// reads, appends and ends. "true" is a process that does nothing, for comparison.
func BenchmarkHook(b *testing.B) {
	home := b.TempDir()
	id := "r_01JD5Y0000000000000000000A"
	if _, err := agency.ParseRunID(id); err != nil {
		b.Fatal(err)
	}
	attempt := filepath.Join(home, "runs", id, "attempts", "1")
	if err := os.MkdirAll(attempt, 0o700); err != nil {
		b.Fatal(err)
	}
	binary := filepath.Join(b.TempDir(), "agency")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build agency: %v\n%s", err, out)
	}
	const payload = `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./..."}}`
	for name, argv := range map[string][]string{"true": {"true"}, "claude_code": {binary, "hook", "claude_code"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
				cmd.Env = []string{"AGENCY_HOME=" + home, "AGENCY_RUN_ID=" + id, "AGENCY_ATTEMPT=1", "PATH=" + os.Getenv("PATH")}
				cmd.Stdin = strings.NewReader(payload)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
	if info, err := os.Stat(filepath.Join(attempt, agency.EventsFile)); err != nil || info.Size() == 0 {
		b.Fatalf("nothing was kept: %v", err)
	}
}
