package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newFullDisk returns a world on a small disk of its own, with a live run "target". fillDisk fills
// the disk, and free makes room on it again.
func newFullDisk(t *testing.T) (w *world, fillDisk, free func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	disk := t.TempDir()
	if err := mount(disk); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { unmount(disk) })
	w = newWorldAt(t, disk)
	runTarget(w)
	for _, name := range []string{"other", "target"} {
		w.must("wait", name, "--for", "needs-input", "--timeout", "20s")
	}
	filler := filepath.Join(disk, "filler")
	fillDisk = func() { fill(t, filler, 0) }
	free = func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	return w, fillDisk, free
}

// On a disk without a free byte every run can be inspected, agents can be stopped, a dead agent
// does not show as working, and a killed daemon is replaced by the next one.
func TestFullDiskWorks(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	fillDisk()
	for range 2 {
		for _, args := range [][]string{{"ls"}, {"show", "target"}, {"explain", "other"}, {"logs", "other"}, {"events"}, {"alerts"}} {
			w.must(args...)
		}
		w.f.Agency("doctor") // its exit status reports a problem
		w.killDaemons()
	}
	w.must("stop", "target")
	if r := w.target(); r.State != "killed" {
		t.Errorf("the stopped run is %s", r.State)
	}
	other := w.run("other")
	w.kill(w.marked(other.ID))
	w.await("the death of the agent to show", func() bool { return w.run("other").State == "failed" })
	w.killDaemons()
	if r := w.run("other"); r.State != "failed" {
		t.Errorf("after another kill the dead agent is %s", r.State)
	}
	free()
	w.must("rm", "target")
	if wrong := append(w.rest(true), w.database()...); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// Output that does not fit on a full disk is missing in the log; the log and show report its size,
// while the agent runs and after it ended.
func TestFullDiskLog(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	if err := syscall.Mkfifo(w.path("go"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("run", "--name", "loud", "--runner", "shell", "--headless", "--prompt",
		"read go <"+w.path("go")+"; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; read go <"+w.path("go"))
	fillDisk()
	w.pass()
	lost := regexp.MustCompile(`log lost: +(\d+) bytes`)
	w.await("show to tell", func() bool { return lost.MatchString(w.must("show", "loud")) })
	w.pass()
	w.must("wait", "loud", "--timeout", "20s")
	shown := lost.FindStringSubmatch(w.must("show", "loud"))
	log := w.must("logs", "loud")
	missing := 0
	for _, m := range regexp.MustCompile(`\[agency: (\d+) bytes are missing here`).FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(m[1])
		missing += n
	}
	if len(shown) != 2 || shown[1] != strconv.Itoa(missing) {
		t.Errorf("show tells %v, the log %d, and it ends with %q", shown, missing, log[max(0, len(log)-200):])
	}
	free()
	if wrong := append(w.rest(false), w.database()...); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// An agent that cannot write on a full disk keeps its earlier work, also when its run and its
// branch are removed.
func TestFullDiskKeepsWork(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	w.must("run", "--name", "kept", "--prompt", "write work.txt precious\ncommit it\nask ready?")
	w.must("wait", "kept", "--for", "needs-input", "--timeout", "20s")
	w.must("stop", "kept")
	w.must("resume", "kept", "--prompt", "wait-file go\nwrite work.txt "+strings.Repeat("worthless ", 1000))
	fillDisk()
	if err := os.WriteFile(filepath.Join(w.run("kept").Worktree, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.f.Agency("wait", "kept", "--timeout", "20s"); r.Exit != 1 || w.run("kept").State != "failed" {
		t.Errorf("wait: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if !w.hasWork(w.run("kept")) {
		t.Error("the agent destroyed its own work")
	}
	free()
	w.must("rm", "--delete-branch", "kept")
	if !w.hasWork(w.run("kept")) {
		t.Error("the work of the agent is lost")
	}
	w.calm(false)
}

// A rebuild without room on the disk fails, and leaves nothing in place of the database. With room
// it restores everything.
func TestFullDiskRebuild(t *testing.T) {
	t.Parallel()
	w, _, free := newFullDisk(t)
	w.must("daemon", "stop")
	w.deleted("agency.db")
	filler := filepath.Join(filepath.Dir(w.f.Data), "filler")
	refused := 0
	for room := int64(0); ; room += 32 << 10 {
		fill(t, filler, room)
		r := w.f.Agency("db", "rebuild")
		free()
		if r.Exit == 0 {
			if !strings.Contains(r.Stdout, "added 2 runs") || strings.Contains(r.Stdout, "left out") {
				t.Errorf("with %d bytes: %s%s", room, r.Stdout, r.Stderr)
			}
			break
		}
		refused++
		if r.Exit != 1 || !strings.Contains(r.Stderr, "E_DB_ERROR") || !strings.Contains(r.Stderr, "room") {
			t.Errorf("with %d bytes: exit %d: %s%s", room, r.Exit, r.Stdout, r.Stderr)
		}
		w.deletedNot("agency.db")
	}
	if refused == 0 {
		t.Error("the disk was never full")
	}
	w.calm(false)
	if runs, err := w.runs(); err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// A daemon whose database is deleted while it starts on a full disk does not end, because it alone
// has the record: it writes the record back when there is room.
func TestFullDiskDatabaseDeleted(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	run, seq, pids := w.target().ID, w.lastSeq(), w.daemons()
	w.kill(pids)
	w.awaitDeath(pids)
	w.hold("daemon.opened", "ls")
	fillDisk()
	w.deleted("agency.db")
	w.release()
	w.awaitClient()
	if !strings.Contains(w.said(), "target") {
		t.Errorf("ls on a full disk: %s", w.said())
	}
	free()
	database := filepath.Join(w.f.Data, "agency.db")
	w.await("the database", func() bool { _, err := os.Lstat(database); return err == nil })
	if r := w.target(); r == nil || r.ID != run || w.lastSeq() < seq {
		t.Errorf("the record has %+v", r)
	}
	w.must("stop", "target")
	w.must("rm", "target")
	w.calm(false)
}

// pass lets an agent continue that reads from the pipe "go".
func (w *world) pass() {
	w.t.Helper()
	if err := os.WriteFile(w.path("go"), []byte("go\n"), 0o600); err != nil { // waits for the reader
		w.t.Fatal(err)
	}
}

// A disk with less room than [disk] min_free takes no new run, and every other command works; with
// room again it takes runs.
func TestDiskLow(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	fillDisk()
	r := w.f.Agency("run", "--name", "more", "--prompt", asks)
	if r.Exit != 1 || !strings.Contains(r.Stderr, "E_DISK_LOW") || !strings.Contains(r.Stderr, "min_free") {
		t.Errorf("run: exit %d: %s", r.Exit, r.Stderr)
	}
	w.must("ls")
	free()
	w.must("run", "--name", "more", "--prompt", asks)
	w.calm(false)
}

// A full disk is an alert of the host: it opens once, reaches a channel while no agent can act,
// cannot be acknowledged for the user by an agent, and ends when there is room again. The next time
// is another alert.
func TestDiskLowAlert(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	w.script("tell", "#!/bin/sh\ncat >>"+w.path("shown")+"\n")
	w.configure(fmt.Sprintf("[watchdog]\npoll_interval_secs = 1\n[notify.channels.tell]\nkind = \"command\"\nargv = [%q]\n", w.path("tell")))
	w.must("notify", "ls") // the daemon has loaded the configuration
	fillDisk()
	w.await("the alert", func() bool { return len(w.diskAlerts()) == 1 })
	w.await("the channel", func() bool {
		shown, _ := os.ReadFile(w.path("shown"))
		return strings.Count(string(shown), `"msg_type":"host.disk"`) == 1 && strings.Contains(string(shown), w.f.Data)
	})
	if list := w.must("alerts"); !regexp.MustCompile(`(?m)^\S+ +\S+ +a disk is nearly full: \d+ MiB left, .*agency gc$`).MatchString(list) {
		t.Error(list)
	}
	elsewhere := "git init -q elsewhere && cd elsewhere && exec \"$0\" alerts" // agency was never used there
	if r := w.f.Command("", "sh", "-c", elsewhere, filepath.Join(bin, "agency")); !strings.Contains(r.Stdout, "a disk is nearly full") {
		t.Errorf("in another repository: %+v", r)
	}
	w.killDaemons()
	w.must("watchdog", "status") // the next daemon looks again
	first := w.diskAlerts()
	free()
	w.await("its end", func() bool { return len(w.diskAlerts()) == 0 })
	if all := w.diskAlerts("--all"); len(first) != 1 || !slices.Equal(all, first) {
		t.Errorf("after a restart %q, then %q", first, all)
	}
	fillDisk()
	w.await("another alert", func() bool { return len(w.diskAlerts()) == 1 })
	free()
	w.calm(false)
}

// diskAlerts returns the ids of the alerts about disks.
func (w *client) diskAlerts(flags ...string) []string {
	w.t.Helper()
	var list struct {
		Alerts []struct {
			ID   string `json:"id"`
			Kind string `json:"msg_type"`
		} `json:"alerts"`
	}
	if err := w.data(&list, append([]string{"alerts"}, flags...)...); err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, a := range list.Alerts {
		if a.Kind == "host.disk" {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// A daemon that starts on a disk without room for its reserve logs that, and takes the reserve when
// there is room.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	w.configure("[watchdog]\npoll_interval_secs = 1\n")
	reserved := func() bool {
		said := w.f.Agency("doctor").Stdout
		if !strings.Contains(said, "data root") {
			t.Fatal(said)
		}
		return !strings.Contains(said, "no room on the disk is reserved")
	}
	if !reserved() {
		t.Error("there is no reserve at first")
	}
	w.must("daemon", "stop") // which releases it
	fill(t, filepath.Join(filepath.Dir(w.f.Data), "filler"), 1<<20)
	if reserved() {
		t.Error("doctor does not tell that the reserve is missing")
	}
	free()
	w.await("the reserve", reserved)
	fillDisk()
	w.must("stop", "target")
	free()
	w.calm(false)
}

// When even the reserve is used up, agents can be stopped and their ends show, with a daemon that
// can write nothing and with the next one. The record contains all of it, once, when there is room.
func TestFullDiskBeyondTheReserve(t *testing.T) {
	t.Parallel()
	w, fillDisk, free := newFullDisk(t)
	w.configure("[watchdog]\npoll_interval_secs = 1\n")
	w.must("run", "--name", "third", "--prompt", asks)
	w.must("wait", "third", "--for", "needs-input", "--timeout", "20s")
	w.must("run", "--name", "bare", "--prompt", "wait-file "+w.path("go"))
	reserved, _ := filepath.Glob(filepath.Join(w.run("bare").Dir, "attempts/1/*.reserved"))
	if len(reserved) != 2 {
		t.Fatalf("reserved for the exit record: %q", reserved)
	}
	for _, path := range reserved { // the reserve has no room either
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	fillDisk()
	w.useUp()
	if r := w.f.Agency("stop", "target"); r.Exit != 0 || !strings.Contains(r.Stdout, "target is stopped") || !strings.Contains(r.Stderr, "not in the record yet") {
		t.Fatalf("stop: %+v", r)
	}
	w.kill(w.marked(w.run("other").ID))
	w.must("wait", "other", "--for", "failed", "--timeout", "20s")
	w.must("send", "bare", "hello") // typed text counts as typed, and is not typed again
	w.write("go", "")
	w.must("wait", "bare", "--for", "completed", "--timeout", "20s")
	ends := map[string]string{"target": "killed", "other": "failed", "bare": "completed"}
	for name := range ends {
		if said := w.must("show", name); !strings.Contains(said, "not in the record yet") {
			t.Error(said)
		}
	}

	w.killDaemons()
	w.must("wait", "bare", "--for", "completed", "--timeout", "20s") // its wrapper keeps the exit record
	if r := w.f.Agency("stop", "third"); r.Exit != 0 {
		t.Errorf("stop under the next daemon: %+v", r)
	}
	ends["third"] = "killed"
	for name, state := range ends {
		if r := w.run(name); r.State != state {
			t.Errorf("with the next daemon %s is %s", name, r.State)
		}
	}

	if r := w.f.Agency("rm", "target"); r.Exit != 1 || !strings.Contains(r.Stderr, "make a little room on its disk") {
		t.Errorf("rm without a byte: %+v", r)
	}
	free()
	for name, state := range ends {
		w.await("the record of "+name, func() bool { return !strings.Contains(w.must("show", name), "not in the record yet") })
		if shown := strings.Count(w.must("events", "--run", name), "attempt.ended"); shown != 1 || w.run(name).State != state {
			t.Errorf("%s is %s, and its end is shown %d times", name, w.run(name).State, shown)
		}
	}
	w.must("rm", "target")
	w.calm(true)
}

// useUp changes the record, in ever smaller steps, until the disk takes nothing more.
func (w *world) useUp() {
	w.t.Helper()
	for _, size := range []int{60 << 10, 4 << 10, 1} {
		for i := 0; ; i++ {
			r := w.f.Agency("messages", "send", "--user", "--text", strings.Repeat("a", size))
			if strings.Contains(r.Stderr, "E_DB_ERROR") {
				break
			}
			if i == 2000 {
				w.t.Fatalf("the disk goes on taking messages: %+v", r)
			}
		}
	}
}
