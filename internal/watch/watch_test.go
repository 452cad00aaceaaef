package watch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agency/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *watch.Watcher {
	t.Helper()
	w := watch.New(slog.New(slog.DiscardHandler))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A changed file in a watched directory is reported, until each Add had its Remove.
func TestChanges(t *testing.T) {
	w, dir := start(t), t.TempDir()
	for range 2 {
		if err := w.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	w.Remove(dir)
	path := filepath.Join(dir, "status.json")
	write(t, path)
	select {
	case got := <-w.Changes():
		if got != path {
			t.Errorf("%s changed, want %s", got, path)
		}
	case <-time.After(time.Minute):
		t.Fatal("no change is reported")
	}
}

// Stop does not wait for a reader of a pending change, and a stopped watcher watches nothing.
func TestStop(t *testing.T) {
	w, dir := start(t), t.TempDir()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "unread"))
	w.Stop()
	if err := w.Add(dir); err == nil {
		t.Error("a stopped watcher takes a directory")
	}
	w.Remove(dir)
}
