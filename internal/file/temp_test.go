package file_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agency/internal/file"
)

func TestClearTemp(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "tmp")
	held, err := file.MakeTemp(parent, "push-")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(parent, "push-left") // by a process that was killed
	if err := os.WriteFile(filepath.Join(held.Path, "config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(left, "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "index"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file.ClearTemp(parent)
	if _, err := os.Lstat(filepath.Join(held.Path, "config")); err != nil {
		t.Errorf("what a live process works in: %v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
	if err := held.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(held.Path); !os.IsNotExist(err) {
		t.Errorf("after Remove: %v", err)
	}
}

// A folder that is cleared just as it is made is made again.
func TestMakeTempWhileCleared(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "tmp")
	ended := make(chan struct{})
	var clearing sync.WaitGroup
	clearing.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				file.ClearTemp(parent)
			}
		}
	})
	for range 200 {
		temp, err := file.MakeTemp(parent, "push-")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(temp.Path, "config"), nil, 0o600); err != nil {
			t.Error(err)
		}
		if err := temp.Remove(); err != nil {
			t.Error(err)
		}
	}
	close(ended)
	clearing.Wait()
}
