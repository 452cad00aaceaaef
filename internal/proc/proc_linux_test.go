package proc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"agency/internal/proc"
)

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "long")
	want := bytes.Repeat([]byte("0123456789"), 1000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := proc.Read(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := proc.Read(path + "er"); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestOfThisProcess(t *testing.T) {
	t.Parallel()
	got, err := proc.Of(os.Getpid())
	if err != nil || got.PID != os.Getpid() || got.Parent != os.Getppid() || got.Resident == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := proc.Of(1 << 30); !os.IsNotExist(err) {
		t.Errorf("a process that is not there: %v", err)
	}
}
