package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
)

// deleted removes files of the data root by their names.
func (w *world) deleted(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(w.f.Data, name)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Deleting the lock of a live daemon never leads to two daemons.
func TestLockDeleted(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{
		{"agencyd.lock"},
		{"agencyd.lock", "agencyd.sock"},
		{"agencyd.lock", "agencyd.sock", "agencyd.start.lock"},
	} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deleted(names...)
			w.must("ls")
			runTarget(w)
			if wrong := w.rest(false); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
			w.must("stop", "target")
			w.must("daemon", "stop")
			w.await("the end of every daemon", func() bool { return len(w.daemons()) == 0 })
			w.calm(false)
		})
	}
}

// A daemon ends when another process has its lock, and leaves the files of that process unchanged.
func TestLockTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.daemons()
	lock := flock.New(filepath.Join(w.f.Data, "other.lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := os.Rename(lock.Path(), filepath.Join(w.f.Data, "agencyd.lock")); err != nil {
		t.Fatal(err)
	}
	w.awaitDeath(old)
	if _, err := os.Lstat(filepath.Join(w.f.Data, "agencyd.sock")); err != nil {
		t.Errorf("the socket went with it: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	w.calm(false)
}

// A database that is deleted or replaced under a live daemon is restored with everything that the
// daemon recorded, also after a kill.
func TestDatabaseDeletedAlive(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(w *world){
		"deleted":          func(w *world) { w.deleted("agency.db") },
		"deleted with log": func(w *world) { w.deleted("agency.db", "agency.db-wal") },
		"log deleted":      func(w *world) { w.deleted("agency.db-wal") },
		"replaced": func(w *world) {
			other := filepath.Join(w.f.Data, "other.db")
			w.must("db", "backup", other)
			w.must("tags", "add", "other", "later")
			if err := os.Rename(other, filepath.Join(w.f.Data, "agency.db")); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must("tags", "add", "other", "later")
			before := w.lastSeq()
			hurt(w)
			w.must("ls")
			w.force("tags", "add", "other", "last")
			w.killDaemons()
			if tags := w.must("tags", "ls", "other"); !strings.Contains(tags, "later") || !strings.Contains(tags, "last") {
				t.Errorf("tags %s", tags)
			}
			if after := w.lastSeq(); after <= before {
				t.Errorf("%d events, and there were %d", after, before)
			}
			kept, _ := filepath.Glob(filepath.Join(w.f.Data, "agency.db.replaced-*"))
			if there := !strings.HasPrefix(name, "deleted"); there != (len(kept) > 0) {
				t.Errorf("kept %v", kept) // a log without its database is useless
			}
			w.calm(false)
		})
	}
}

// A rebuild brings back a run whose name the folder of another run has still, because the disk was
// full when that run was removed.
func TestRebuildOfTwoRunsOfAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runTarget(w)
	first := w.target()
	w.must("stop", "target")
	stale, err := os.ReadFile(filepath.Join(first.Dir, "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	w.must("rm", "target")
	runTarget(w)
	second := w.target()
	w.must("daemon", "stop")
	if err := os.WriteFile(filepath.Join(first.Dir, "meta.json"), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	w.deleted("agency.db")
	w.must("db", "rebuild")
	w.must("stop", second.ID)
	w.must("rm", second.ID)
	w.must("rm", first.ID)
	w.calm(false)
}

// A daemon that is asked to stop while it restores a deleted record ends, and does not begin again
// in the same process. The next daemon has that record.
func TestDatabaseDeletedAtAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("tags", "add", "other", "later")
	pids := w.daemons()
	w.write("killpoint", "daemon.stopping hold")
	w.deleted("agency.db")
	w.start([]string{"tags", "add", "other", "last"}) // which is refused, and repeated with the next daemon
	w.awaitHit("daemon.stopping")
	client := api.NewClient(filepath.Join(w.f.Data, "agencyd.sock"), "", nil)
	defer client.Close()
	if _, err := api.Call(t.Context(), client, api.StopDaemon, api.Empty{}); err != nil {
		t.Error(err)
	}
	w.release()
	w.awaitDeath(pids)
	w.awaitClient()
	if tags := w.must("tags", "ls", "other"); !strings.Contains(tags, "later") {
		t.Errorf("tags %s", tags)
	}
	w.calm(false)
}

// force repeats a command until it succeeds. A daemon that restores its record restarts, and tells
// a client at that moment that it went away and that the request may have been carried out.
func (w *client) force(args ...string) {
	w.t.Helper()
	w.await("a daemon that stays", func() bool {
		r := w.f.Agency(args...)
		if r.Exit != 0 && !strings.Contains(r.Stderr, string(agency.CodeDaemonLost)) {
			w.t.Fatalf("agency %v: exit %d: %s", args, r.Exit, r.Stderr)
		}
		return r.Exit == 0
	})
}

func (w *client) lastSeq() int64 {
	w.t.Helper()
	var status struct {
		LastSeq int64 `json:"last_seq"`
	}
	if err := w.data(&status, "daemon", "status"); err != nil {
		w.t.Fatal(err)
	}
	return status.LastSeq
}

// agency refuses to work when the database is missing but folders of runs exist: it creates no new
// one, and no name is free, until the database is back. The folders of the runs restore it, and the
// live agent belongs to its run again.
func TestDatabaseMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("run", "--name", "target", "--prompt", asks)
	w.must("stop", "target")
	w.must("resume", "target")
	w.must("run", "--name", "gone", "--prompt", asks)
	w.must("stop", "gone")
	w.must("rm", "gone")
	before, err := w.runs()
	if err != nil {
		t.Fatal(err)
	}
	w.must("daemon", "stop")
	w.deleted("agency.db")
	for _, args := range [][]string{{"ls"}, {"run", "--name", "target", "--prompt", asks}, {"doctor"}} {
		if r := w.f.Agency(args...); r.Exit != 1 || !strings.Contains(r.Stderr, "E_DB_MISSING") || !strings.Contains(r.Stderr, "agency db rebuild") {
			t.Errorf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
		}
	}
	w.deletedNot("agency.db")
	t.Log(w.must("db", "rebuild"))
	after, err := w.runs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what the rebuilt record says differs:\n%s", diff)
	}
	var shown struct {
		Attempts []struct {
			State string `json:"state"`
		} `json:"attempts"`
	}
	if err := w.data(&shown, "show", "target"); err != nil || len(shown.Attempts) != 2 || shown.Attempts[0].State != "killed" {
		t.Errorf("attempts %+v, %v", shown, err)
	}
	w.must("send", "target", "go on")
	w.must("wait", "target")
	w.must("rm", "target")
	w.calm(false)
}

// deletedNot fails the test if a file that was deleted is there again.
func (w *world) deletedNot(name string) {
	w.t.Helper()
	if _, err := os.Lstat(filepath.Join(w.f.Data, name)); err == nil {
		w.t.Errorf("%s was made anew", name)
	}
}

// A creation whose record was lost in the middle is rebuilt from the folder of its run, and the
// next daemon undoes all of it.
func TestRebuildCutOff(t *testing.T) {
	t.Parallel()
	for point, runner := range map[string]string{"create.files.made": "scripted", "launch.written": "scripted", "undo.ended": "broken"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hold(point, "run", "--name", "target", "--runner", runner, "--prompt", asks)
			run, pids := w.newest(), w.daemons()
			w.deleted("agency.db")
			w.kill(pids)
			w.awaitDeath(pids)
			w.awaitClient()
			if said := w.must("db", "rebuild"); !strings.Contains(said, "added 2 runs") {
				t.Fatal(said)
			}
			w.calm(false)
			if r := w.target(); r == nil || r.ID != run || r.RemovedAt == nil || r.State != "failed" {
				t.Errorf("it is %+v", r)
			}
			w.must("run", "--name", "target", "--prompt", asks)
		})
	}
}

// A later attempt that was being created when the record was lost is failed by the next daemon, and
// nothing of it is left.
func TestRebuildCutOffResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stoppedTarget(w)
	w.hold("launch.written", "resume", "target")
	pids := w.daemons()
	w.deleted("agency.db")
	w.kill(pids)
	w.awaitDeath(pids)
	w.awaitClient()
	w.must("db", "rebuild")
	w.calm(false)
	if r := w.target(); r.Attempt != 2 || r.State != "failed" {
		t.Errorf("it is %+v", r)
	}
	w.must("resume", "target")
}

// An agent that had just begun to work when the record was lost belongs to its run again.
func TestRebuildBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("wrapper.forked", "run", "--name", "target", "--prompt", asks)
	run, pids := w.newest(), w.daemons()
	w.deleted("agency.db")
	w.kill(pids)
	w.awaitDeath(pids)
	w.awaitClient()
	w.release()
	w.await("the agent's work", func() bool {
		found, _ := filepath.Glob(filepath.Join(w.f.Data, "worktrees", "*", run, "work.txt"))
		return len(found) == 1
	})
	w.must("db", "rebuild")
	w.must("wait", "target", "--for", "needs-input", "--timeout", "20s")
	w.must("send", "target", "go on")
	w.must("wait", "target")
	w.calm(false)
}

// A backup does not contain later changes. A rebuild restores them from the folders of the runs.
func TestRebuildAfterRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backup := w.path("backup.db")
	w.must("db", "backup", backup)
	w.must("tags", "add", "other", "later")
	w.must("run", "--name", "target", "--prompt", asks)
	w.must("daemon", "stop")
	w.must("db", "restore", backup)
	t.Log(w.must("db", "rebuild"))
	if tags := w.must("tags", "ls", "other"); !strings.Contains(tags, "later") {
		t.Errorf("tags %s", tags)
	}
	w.must("send", "target", "go on")
	w.must("wait", "target")
	if again := w.must("daemon", "stop") + w.must("db", "rebuild"); !strings.Contains(again, "added 0 runs, brought 0 up to date") {
		t.Errorf("a second rebuild: %s", again)
	}
	w.calm(false)
}

// A wrapper that meets a daemon which does not know its run, because a backup was restored, connects
// again when a rebuild has brought the run back.
func TestRebuildAfterADaemonWithoutTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backup := w.path("backup.db")
	w.must("db", "backup", backup)
	w.must("run", "--name", "target", "--prompt", asks)
	run := w.newest()
	w.must("daemon", "stop")
	w.must("db", "restore", backup)
	w.must("ls")
	w.await("the daemon's refusal", func() bool {
		log, err := os.ReadFile(filepath.Join(w.f.Data, "logs", "agencyd.log"))
		return err == nil && strings.Contains(string(log), `msg="refuse wrapper" run=`+run)
	})
	w.must("daemon", "stop")
	t.Log(w.must("db", "rebuild"))
	w.must("send", "target", "go on")
	w.must("wait", "target")
	w.calm(false)
}

// A rebuild brings back an attempt also when a daemon that did not know it has recorded the end of the
// attempt before it meanwhile, as the last change of the run.
func TestRebuildAfterADaemonWithoutTheAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backup := w.path("backup.db")
	w.must("run", "--name", "target", "--prompt", asks)
	w.must("db", "backup", backup)
	w.must("stop", "target")
	w.must("resume", "target")
	w.must("daemon", "stop")
	w.must("db", "restore", backup)
	w.await("the end of the first attempt", func() bool { return w.target().final() })
	w.must("daemon", "stop")
	t.Log(w.must("db", "rebuild"))
	if r := w.target(); r.Attempt != 2 {
		t.Errorf("it is %+v", r)
	}
	w.calm(false)
}
