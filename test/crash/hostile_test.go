package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
)

// calm fails the test if something is wrong, now or in the database.
func (w *world) calm(tmuxDied bool) {
	w.t.Helper()
	if wrong := append(w.rest(tmuxDied), w.database()...); len(wrong) > 0 {
		w.t.Errorf("%s", strings.Join(wrong, "\n"))
	}
}

// A socket that is deleted under a live daemon is made again, without a second daemon.
func TestSocketDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.daemons()
	if err := os.Remove(filepath.Join(w.f.Data, "agencyd.sock")); err != nil {
		t.Fatal(err)
	}
	w.must("ls")
	if after := w.daemons(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("daemons %v before and %v after", before, after)
	}
	runTarget(w)
	w.must("stop", "target")
	w.must("rm", "target")
	w.calm(false)
}

// A file that is not a database is refused and kept byte for byte.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(whole []byte) []byte{
		"garbage":    func([]byte) []byte { return bytes.Repeat([]byte("garbage "), 1000) },
		"truncated":  func(whole []byte) []byte { return whole[:len(whole)/2] },
		"one page":   func(whole []byte) []byte { return whole[:4096] },
		"no header":  func(whole []byte) []byte { return append(make([]byte, 100), whole[100:]...) },
		"short text": func([]byte) []byte { return []byte("hello\n") },
	} {
		if !whole && name != "garbage" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := filepath.Join(w.f.Data, "agency.db")
			backup := w.path("backup.db")
			w.must("db", "backup", backup)
			w.must("daemon", "stop")
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage(whole)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			r := w.f.Agency("ls")
			if r.Exit == 0 || !strings.Contains(r.Stderr, "E_DB_ERROR") || !strings.Contains(r.Stderr, "agency db restore FILE") {
				t.Errorf("ls: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
				t.Errorf("the damaged file was changed: %v", err)
			}
			w.must("db", "restore", backup)
			kept, err := filepath.Glob(path + ".replaced-????????T??????.???Z")
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept %v, %v", kept, err)
			}
			if now, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(now, bad) {
				t.Errorf("what was replaced was changed: %v", err)
			}
			w.calm(false)
		})
	}
}

// restorePoints are the points where a restore of the database can be interrupted.
var restorePoints = []string{"restore.begun", "restore.kept", "restore.aside"}

// The next command finishes a killed restore, and the replaced database is complete, with the last
// changes in its log.
func TestRestoreCutOff(t *testing.T) {
	t.Parallel()
	for _, point := range restorePoints {
		if !whole && point != "restore.aside" {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			backup := w.path("backup.db")
			w.must("db", "backup", backup)
			w.must("tags", "add", "other", "later")
			w.killDaemons()
			w.write("killpoint", point)
			if r := w.f.Agency("db", "restore", backup); r.Exit != -1 {
				t.Fatalf("the restore was not killed: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
			}
			if tags := w.must("tags", "ls", "other"); strings.Contains(tags, "later") {
				t.Errorf("after the restore: %s", tags)
			}
			path := filepath.Join(w.f.Data, "agency.db")
			kept, err := filepath.Glob(path + ".replaced-????????T??????.???Z")
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept %v, %v", kept, err)
			}
			w.calm(false)
			w.must("daemon", "stop")
			w.must("db", "restore", kept[0])
			if tags := w.must("tags", "ls", "other"); !strings.Contains(tags, "later") {
				t.Errorf("after the restore of what was replaced: %s", tags)
			}
			w.calm(false)
			left, err := filepath.Glob(filepath.Join(w.f.Data, "agency.db.rest*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Torn, hostile or missing files of a run neither stop the daemon nor make it report a wrong
// status.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"torn":      func(path string) error { return os.WriteFile(path, []byte(`{"schema_version": 1, "run`), 0o600) },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"wrong":     func(path string) error { return os.WriteFile(path, []byte(`["exit", 0]`), 0o600) },
		"huge":      func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("{"), 1<<20), 0o600) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "deep"), 0o700) },
	} {
		if !whole && name != "torn" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			runTarget(w)
			r := w.target()
			w.must("daemon", "stop")
			attempt := filepath.Join(r.Dir, "attempts", "1")
			for _, path := range []string{
				filepath.Join(attempt, "started.json"), filepath.Join(attempt, "runner_done.json"),
				filepath.Join(r.Dir, "meta.json"), filepath.Join(r.Dir, "state.json"),
			} {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
			}
			wrapper := w.wrapper(r.ID)
			w.kill(wrapper)
			w.awaitDeath(wrapper)
			w.await("the loss", func() bool { return w.target().State == "failed" })
			if now := w.target(); now.ErrorCode != "E_RUNNER_DISAPPEARED" {
				t.Errorf("it failed with %s %s", now.ErrorCode, now.Error)
			}
			for _, path := range []string{filepath.Join(attempt, "started.json"), filepath.Join(attempt, "runner_done.json")} {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			w.must("rm", "target")
			w.calm(false)
		})
	}
}

// An exit record that the disk does not give yet is not a missing one, and the agent's last status is not
// an invalid one: the run stays as it is until then.
func TestLastFilesFailToBeRead(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file")
	}
	for name, place := range map[string]func(w *world) string{
		"exit record": func(w *world) string { return filepath.Join(w.target().Dir, "attempts", "1", "runner_done.json") },
		"status file": func(w *world) string { return filepath.Join(w.target().Worktree, agency.ContractFile) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must("run", "--name", "target", "--prompt", "wait-file "+w.path("go"))
			path, wrapper := place(w), w.wrapper(w.target().ID)
			w.must("daemon", "stop")
			w.write("go", "")
			w.awaitDeath(wrapper)
			if err := mountFailing(path); err != nil {
				t.Skipf("no file that fails: %v", err)
			}
			t.Cleanup(func() { unmount(path) })
			if now := w.target(); now.State != "running" { // the next daemon has looked by its first answer
				t.Errorf("it is %s: %s %s", now.State, now.ErrorCode, now.Error)
			}
			unmount(path)
			w.must("wait", "target", "--for", "completed", "--timeout", "90s")
			w.calm(false)
		})
	}
}

// On a full disk, or one that soon is, every command works or reports the disk, and with room again
// everything recovers.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for name, op := range map[string]struct {
		prepare func(*world)
		command []string
	}{
		"run":      {nil, []string{"run", "--name", "target", "--prompt", asks}},
		"stop":     {runTarget, []string{"stop", "target"}},
		"rm":       {stoppedTarget, []string{"rm", "target"}},
		"resume":   {stoppedTarget, []string{"resume", "--fresh", "target"}},
		"snapshot": {stoppedTarget, []string{"snapshot", "target"}},
	} {
		for _, room := range []int64{0, 16 << 10, 64 << 10, 160 << 10} {
			if !whole && (name != "run" || room > 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s with %d KiB", name, room>>10), func(t *testing.T) {
				t.Parallel()
				fullDisk(t, op.prepare, op.command, room)
			})
		}
	}
}

func fullDisk(t *testing.T, prepare func(*world), command []string, room int64) {
	disk := t.TempDir()
	if err := mount(disk); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { unmount(disk) })
	w := newWorldAt(t, disk)
	w.configure("[disk]\nmin_free = \"0KiB\"\n") // otherwise no run would reach a full disk
	w.must("daemon", "stop")
	if prepare != nil {
		prepare(w)
	}
	w.must("wait", "other", "--for", "needs-input", "--timeout", "20s") // it writes until then
	filler := filepath.Join(disk, "filler")
	fill(t, filler, room)
	w.start(command)
	select {
	case <-w.ended:
	case <-time.After(5 * time.Second): // it may wait for room
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.awaitClient()
	t.Logf("exit %d: %s", w.process.ProcessState.ExitCode(), w.output.String())
	if wrong := w.rest(false); len(wrong) > 0 {
		log, _ := os.ReadFile(filepath.Join(w.f.Data, "logs", "agencyd.log"))
		t.Fatalf("%s\n%s", strings.Join(wrong, "\n"), log)
	}
	if r := w.target(); r != nil && r.RemovedAt == nil {
		if r.State == "running" {
			w.must("stop", "target")
		}
		w.must("rm", "target")
	}
	w.must("run", "--name", "target", "--prompt", asks)
	w.calm(false)
}

// A read-only data root is refused with an error, and works again when it is writable.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a disk")
	}
	disk := t.TempDir()
	if err := mount(disk); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	t.Cleanup(func() { unmount(disk) })
	w := newWorldAt(t, disk)
	w.must("stop", "other")
	w.must("daemon", "stop")
	w.await("a disk without writers", func() bool { return writable(disk, false) == nil })
	for _, args := range [][]string{{"ls"}, {"run", "--name", "target", "--prompt", asks}, {"rm", "other"}} {
		if r := w.f.Agency(args...); r.Exit != 6 || !strings.Contains(r.Stderr, "read-only") {
			t.Errorf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
		}
	}
	if err := writable(disk, true); err != nil {
		t.Fatal(err)
	}
	w.must("run", "--name", "target", "--prompt", asks)
	w.must("rm", "other")
	w.calm(true)
}

// fill writes until nothing fits any more, except for room bytes.
func fill(t *testing.T, path string, room int64) {
	t.Helper()
	if err := fillUp(path, room); err != nil {
		t.Fatal(err)
	}
}

// fillUp makes a file that leaves that many bytes free on its disk.
func fillUp(path string, room int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(max(0, info.Size()-room))
	}
	return errors.Join(err, f.Close())
}
