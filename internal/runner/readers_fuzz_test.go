package runner_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agency/internal/runner"
)

// A launch file names a program and a folder, or it is refused; in both cases it is deleted.
func FuzzReadLaunch(f *testing.F) {
	f.Add([]byte(`{"run_id":"r_01JD00000000000000000000A1","attempt":1,"attempt_dir":"/runs/1","argv":["/bin/true"],"env":["A=b"]}`))
	f.Add([]byte(`{"argv":[""],"attempt_dir":"x"} {}`))
	f.Add([]byte(`{"argv":null,"attempt_dir":1}`))
	f.Add([]byte("null"))
	path := filepath.Join(f.TempDir(), "launch.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		launch, err := runner.ReadLaunch(path)
		if err == nil && (len(launch.Argv) == 0 || launch.AttemptDir == "") {
			t.Errorf("got %+v", launch)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("the launch file is still there")
		}
	})
}

// A log is read to its end, whatever its index or its first line contains.
func FuzzOpenLog(f *testing.F) {
	f.Add([]byte("hello\n"), []byte("1000 0 0 0\n2000 3 3 0\n"), int64(1500), int64(0))
	f.Add([]byte("[agency: 12 bytes dropped]\nrest\n"), []byte("0 99999999999 -1 x\n\n1 2 3\n"), int64(1), int64(13))
	f.Add([]byte{}, []byte("9223372036854775807 9223372036854775807 0 0\n"), int64(-1), int64(-5))
	dir := f.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, log, index []byte, sinceMS, offset int64) {
		for name, data := range map[string][]byte{"runner.log": log, "index": index} {
			if err := os.WriteFile(filepath.Join(dir, "logs", name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := runner.OpenLog(dir, "runner", time.UnixMilli(sinceMS))
		if err != nil {
			return
		}
		defer func() { _ = l.Close() }()
		rest, err := io.ReadAll(l)
		if err != nil || len(rest) > len(log) {
			t.Errorf("read %d of %d bytes, %v", len(rest), len(log), err)
		}
		if l.GoTo(offset) == nil {
			if rest, err := io.ReadAll(l); err != nil || len(rest) > len(log) {
				t.Errorf("read %d of %d bytes from %d, %v", len(rest), len(log), offset, err)
			}
		}
	})
}
