package script_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agency"
	"agency/test/fixture"
)

// asks reports whether the command has connected to the daemon, which may not have accepted it yet.
func (s started) asks() bool {
	table, _ := os.ReadFile("/proc/net/unix")
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(s.Process.Pid) + "/fd/*")
	for _, file := range files {
		to, _ := os.Readlink(file)
		inode, _ := strings.CutPrefix(strings.TrimSuffix(to, "]"), "socket:[")
		if strings.Contains(string(table), " 0001 03 "+inode+"\n") || strings.Contains(string(table), " 0001 03 "+inode+" ") { // a connected stream
			return true
		}
	}
	return false
}

// Commands of an older agency that only read do not keep its daemon from being replaced. They continue
// with the newer one, which has the same operations.
func TestReadersOutliveUpgrade(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	old, err := sameCommit()
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Command("", old, "run", "--runner", "shell", "--name", "first", "--prompt", `echo begun; read line; agency messages send --owner --text "good morning"; sleep 1000`); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	older := refusal(t, f).Details["daemon_version"]
	list, alerts, log := start(t, f, old, "ls", "--watch"), start(t, f, old, "alerts", "--follow"), start(t, f, old, "logs", "-f", "first")
	wait, poll := start(t, f, old, "wait", "first", "--timeout", "60s"), start(t, f, old, "messages", "poll", "--wait", "60s")
	await(t, "the readers read", func() bool {
		return strings.Contains(list.printed(), "first") && strings.Contains(log.printed(), "begun") && wait.asks() && poll.asks() && alerts.asks()
	})
	// The daemon accepts in the order of the connections: once it has answered another one, it serves
	// all readers.
	if r := f.Command("", old, "ls"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}

	if r := f.Agency("send", "first", "the newer one"); r.Exit != 0 || refusal(t, f).Details["daemon_version"] == older {
		t.Fatalf("the daemon is still %v: %s", older, r.Stderr)
	}
	await(t, "the log goes on", func() bool { return strings.Contains(log.printed(), "for the user") })
	if r := f.Agency("stop", "first"); r.Exit != 0 {
		t.Error(r.Stderr)
	}
	await(t, "the list goes on", func() bool { return strings.Contains(list.printed(), "stopped") })
	_, _, _ = log.Wait(), wait.Wait(), poll.Wait()
	if logged, exit := log.ProcessState.ExitCode(), wait.ProcessState.ExitCode(); logged != 0 || exit != agency.ExitError {
		t.Errorf("logs exited with %d: %s; wait for a run that was stopped with %d: %s", logged, log.printed(), exit, wait.printed())
	}
	if !strings.Contains(wait.printed(), "stopped") || !strings.Contains(poll.printed(), "good morning") {
		t.Errorf("wait: %s; messages poll: %s", wait.printed(), poll.printed())
	}
	if refusal(t, f).Details["daemon_version"] == older || alerts.Process.Signal(syscall.Signal(0)) != nil {
		t.Errorf("the older daemon is back, or alerts --watch has ended: %s", alerts.printed())
	}
}
