package runner_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

func TestReadRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if exit, err := runner.ReadExit(dir); exit != nil || err != nil {
		t.Errorf("a missing record: %+v, %v", exit, err)
	}
	path := filepath.Join(dir, "runner_done.json")
	for _, text := range []string{"", "{", "null", "[]", `{"exit_code":0}{}`, `{"exit_kode":0}`, `{"exit_code":"0"}`, "{}" + strings.Repeat(" ", 70<<10)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if exit, err := runner.ReadExit(dir); err == nil {
			t.Errorf("%.20q: %+v", text, exit)
		}
	}
	_ = os.Remove(path)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, err := runner.ReadExit(dir); err == nil {
		t.Errorf("a FIFO: %+v", exit)
	}
}

func FuzzReadStart(f *testing.F) {
	f.Add([]byte(`{"wrapper":{"pid":1,"start_ticks":2,"boot_id":"b"},"runner":{"pid":2}}`))
	f.Add([]byte(`{"wrapper":{"pid":1e99}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "started.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if start, err := runner.ReadStart(dir); (start == nil) == (err == nil) {
			t.Errorf("%+v, %v", start, err)
		}
	})
}

func FuzzReadExit(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"run_id":"r_x","attempt":1,"exit_code":0,"ended_by":"runner"}`))
	f.Add([]byte(`{"exit_code":1e99}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "runner_done.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if exit, err := runner.ReadExit(dir); (exit == nil) == (err == nil) {
			t.Errorf("%+v, %v", exit, err)
		}
	})
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := runner.Identify(cmd.Process.Pid)
	if err != nil || !alive(p) || p.BootID == "" {
		t.Fatalf("identity %+v, %v", p, err)
	}
	for _, other := range []agency.Process{
		{}, {PID: p.PID}, {PID: p.PID, StartTicks: p.StartTicks + 1, BootID: p.BootID}, {PID: p.PID, StartTicks: p.StartTicks, BootID: "other"},
	} {
		if alive(other) {
			t.Errorf("%+v is alive", other)
		}
		if err := runner.Signal(other, unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
			t.Errorf("signal to %+v: %v", other, err)
		}
	}
	if err := runner.Signal(p, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a zombie not to count as alive", func() bool { return !alive(p) })
	_ = cmd.Wait()
	if _, err := runner.Identify(p.PID); !errors.Is(err, unix.ESRCH) {
		t.Errorf("identify a dead process: %v", err)
	}
}

func TestHeldCreatesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if locked, err := runner.Locked(dir); locked || err != nil {
		t.Errorf("%v, %v", locked, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("it made %v", entries)
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	f := prepare(t, "sleep 100")
	f.begin(true)
	var info os.FileInfo
	eventually(t, "a heartbeat", func() bool {
		var err error
		info, err = os.Stat(filepath.Join(f.launch.AttemptDir, "wrapper", "heartbeat"))
		return err == nil
	})
	if age := time.Since(info.ModTime()); age > 10*time.Second {
		t.Errorf("the heartbeat is %v old", age)
	}
}

// The launch file holds a token: it must belong to this user, and only this user may read it.
func TestLaunchFileRefused(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"missing":      func(string) error { return nil },
		"readable":     func(path string) error { return os.WriteFile(path, []byte(`{}`), 0o644) },
		"a link":       func(path string) error { return os.Symlink("/etc/hostname", path) },
		"no JSON":      func(path string) error { return os.WriteFile(path, []byte(`hello`), 0o600) },
		"no program":   func(path string) error { return os.WriteFile(path, []byte(`{"attempt_dir":"/tmp"}`), 0o600) },
		"unknown keys": func(path string) error { return os.WriteFile(path, []byte(`{"argvv":[]}`), 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "launch.json")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(os.Args[0], "wrapper", path).Output()
		if err == nil || !strings.HasPrefix(string(out), "agency: error: ") {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"kind":"hello","hello":{"run_id":"r"}}`))
	f.Add([]byte(`{"kind":1}`))
	f.Fuzz(func(_ *testing.T, line []byte) { _ = runner.ParseMessage(line) })
}
