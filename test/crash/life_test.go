package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agency/internal/api"
	"agency/internal/sqlite"
)

// life is one world of a soak, from its first run to its last check.
type life struct {
	*world
	soak *soak
	seed uint64
	disk string // the small disk under its data root; empty where none could be made

	filled bool // the disk was full at some time

	mu      sync.Mutex
	begin   time.Time
	log     []string        // what happened, in order
	wrong   []string        // wrong answers of clients
	made    map[string]bool // handles of runs that clients got
	saved   map[string]bool // refs of snapshots, and of branches made from them, that clients got
	clients map[*exec.Cmd]bool
	undo    []func() // for faults that end

	// These record what the faults of this round deleted: agency.db, its lock, and both or a daemon
	// too, so that the record may be lost.
	deleted, unlocked, losable bool
	rebuilt                    bool // the record was lost at some time and rebuilt
	killed                     map[int]bool

	past memory
}

func newLife(t *testing.T, s *soak, seed uint64) *life {
	l := &life{soak: s, seed: seed, begin: time.Now(), made: map[string]bool{}, saved: map[string]bool{}, clients: map[*exec.Cmd]bool{}, killed: map[int]bool{}}
	disk, err := os.MkdirTemp("/tmp", "agd") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(disk) })
	if err := mount(disk); err != nil {
		t.Logf("no disk that fills: %v", err)
	} else {
		l.disk = disk
		t.Cleanup(func() { unmount(disk) })
	}
	l.world = newWorldAt(t, disk)
	for i := range 2 {
		l.write(fmt.Sprintf("plan%d.yaml", i), fmt.Sprintf(quickPlan, i))
	}
	l.f.Env = slices.DeleteFunc(l.f.Env, func(kv string) bool { return strings.HasPrefix(kv, "AGENCY_KILLPOINT=") })
	for i, kv := range l.f.Env { // the git that can be made to die costs a shell each time
		l.f.Env[i] = strings.Replace(kv, "PATH="+l.path("shim")+":", "PATH=", 1)
	}
	l.configure("[presets.worker]\nharness = \"scripted\"\n[notify.channels.tell]\nkind = \"command\"\nargv = [\"cat\"]\n")
	if r := l.f.Command("", "git", "init", "-q", l.path("fresh")); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	if seed%2 == 1 { // creations take longer, and need trust
		l.setup("sleep 0.05")
	}
	if seed%4 >= 2 { // there is a backup to restore
		backups := filepath.Join(l.f.Data, sqlite.BackupFolder)
		if err := os.MkdirAll(backups, 0o700); err != nil {
			t.Fatal(err)
		}
		l.must("db", "backup", filepath.Join(backups, sqlite.BackupName(time.Now(), "")))
	}
	l.must("daemon", "stop") // the next daemon inherits this environment
	l.must("daemon", "start")
	return l
}

// live runs the rounds of a life, and fails after the first one that leaves something wrong.
func (l *life) live() {
	random := rand.New(rand.NewPCG(l.seed, 0))
	for round := range roundsOfALife {
		if l.soak.enough() {
			break
		}
		l.note("round %d", round)
		l.round(draw(random, l.f.Root))
		if wrong := l.rested(); len(wrong) > 0 {
			l.fail(wrong)
			return
		}
	}
	if wrong := l.end(); len(wrong) > 0 {
		l.fail(wrong)
	}
}

// round starts clients and faults, undoes the faults that end, and returns when the clients have
// ended.
func (l *life) round(m mix) {
	l.soak.mu.Lock()
	l.soak.rounds++
	l.soak.mu.Unlock()
	l.deleted, l.unlocked, l.losable = false, false, false
	var clients sync.WaitGroup
	for _, commands := range m.clients {
		clients.Go(func() {
			for _, args := range commands {
				l.client(args)
			}
		})
	}
	begin := time.Now()
	for _, s := range m.steps {
		time.Sleep(time.Until(begin.Add(s.at)))
		l.hit(s)
	}
	l.heal()
	clients.Wait()
	l.heal()
}

// note adds a line to the history.
func (l *life) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, fmt.Sprintf("%7.2f ", time.Since(l.begin).Seconds())+strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// say adds a violation that is final.
func (l *life) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// fail reports violations, their history, and how to repeat it.
func (l *life) fail(wrong []string) {
	l.soak.mu.Lock()
	l.soak.broken++
	l.soak.mu.Unlock()
	l.note("the disk: %s", l.f.Command("", "sh", "-c", "df -k "+l.f.Data+"; du -ak "+l.f.Data+" | sort -n | tail -15").Stdout)
	if strings.Contains(strings.Join(wrong, "\n"), "is still there") {
		for _, pid := range l.daemons() {
			_ = syscall.Kill(pid, syscall.SIGQUIT) // it prints its goroutines, and ends
		}
		for deadline := time.Now().Add(5 * time.Second); len(l.daemons()) > 0 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	l.mu.Lock()
	happened := strings.Join(l.log[max(0, len(l.log)-500):], "\n")
	l.mu.Unlock()
	daemon := strings.Split(strings.TrimSpace(l.world.log()), "\n")
	l.t.Errorf("%s\n\nrepeat it: make crash-soak N=1 SEED=%d\n\nwhat happened last:\n%s\n\nthe daemon's log:\n%s", strings.Join(wrong, "\n"), l.seed,
		happened, strings.Join(daemon[max(0, len(daemon)-300):], "\n"))
}

// hit applies one fault.
func (l *life) hit(s step) {
	verb, what, _ := strings.Cut(s.what, " ")
	how := ""
	if l.deleted && s.what == "kill daemon" {
		l.losable = true
	}
	switch verb {
	case "kill":
		how = l.signal(what, s, syscall.SIGKILL)
	case "stop":
		if how = l.signal(what, s, syscall.SIGSTOP); how != "" {
			time.AfterFunc(s.lasts, func() { l.wake(how) })
		}
	case "delete":
		how = l.delete(what)
	case "lose":
		l.losable = true
		l.kill(l.daemons())
		how = l.delete(what)
	case "fill":
		how = l.fillDisk(int64(s.which) << 13)
	case "limit":
		how = l.limitDaemon(s.which)
	}
	if how != "" {
		l.soak.count(l.soak.hurt, s.what)
	}
	l.note("%s: %s", s.what, how)
}

// delete deletes a file of the data root. It returns its name, or "" without such a file.
func (l *life) delete(name string) string {
	if os.Remove(filepath.Join(l.f.Data, name)) != nil {
		return ""
	}
	switch name {
	case "agency.db":
		l.deleted = true
		l.losable = l.losable || !l.held(name)
	case "agencyd.lock": // another daemon can take it, and end this one
		l.unlocked = true
	}
	l.losable = l.losable || l.deleted && l.unlocked
	return name
}

// held reports whether a live daemon serves the data root, has a deleted file of it open, and still
// holds its lock: a daemon that has lost the lock ends, and restores nothing. A daemon that only
// starts may fail to open the file, or to start on a full disk.
func (l *life) held(name string) bool {
	lock := filepath.Join(l.f.Data, "agencyd.lock")
	serving, _ := os.ReadFile(lock)
	for _, pid := range l.daemons() {
		if l.killed[pid] { // but still exists
			continue
		}
		open := map[string]bool{}
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			file, _ := os.Readlink(fd)
			open[file] = true
		}
		if open[filepath.Join(l.f.Data, name)+" (deleted)"] && open[lock] && strings.HasPrefix(string(serving), fmt.Sprint(pid, " "+api.DoingServe)) {
			return true
		}
	}
	return false
}

// signal sends a signal to a process of a kind, for which it waits a moment. It returns the pid, or
// "" without such a process.
func (l *life) signal(kind string, s step, sig syscall.Signal) string {
	for deadline := time.Now().Add(150 * time.Millisecond); ; {
		if pids := l.kind(kind); len(pids) > 0 {
			pid := pids[s.which%len(pids)]
			if syscall.Kill(pid, sig) != nil {
				return ""
			}
			if sig == syscall.SIGSTOP {
				l.mu.Lock()
				l.undo = append(l.undo, func() { l.wake(fmt.Sprint(pid)) })
				l.mu.Unlock()
			} else {
				l.killed[pid] = true
			}
			return fmt.Sprint(pid)
		}
		if time.Now().After(deadline) {
			return ""
		}
	}
}

// wake continues a process that may have ended meanwhile.
func (l *life) wake(pid string) {
	var n int
	if _, err := fmt.Sscan(pid, &n); err == nil {
		_ = syscall.Kill(n, syscall.SIGCONT)
	}
}

// kind returns the processes that a fault can hit.
func (l *life) kind(kind string) []int {
	if kind == "client" {
		l.mu.Lock()
		defer l.mu.Unlock()
		pids := []int{}
		for cmd := range l.clients {
			pids = append(pids, cmd.Process.Pid)
		}
		slices.Sort(pids)
		return pids
	}
	if kind == "git" {
		return l.youngGits()
	}
	seen := l.scene()
	switch kind {
	case "daemon":
		return seen.daemons
	case "tmux":
		return seen.tmux
	case "wrapper":
		return flat(seen.wrappers)
	default:
		return flat(seen.marked)
	}
}

// youngGits waits a moment for a git, which lives for a few milliseconds: it looks only at
// processes that begin meanwhile.
func (l *life) youngGits() []int {
	old := map[string]bool{}
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		proc, err := os.Open("/proc")
		if err != nil {
			return nil
		}
		names, _ := proc.Readdirnames(-1)
		_ = proc.Close()
		first := len(old) == 0
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || old[name] {
				continue
			}
			comm, _ := os.ReadFile("/proc/" + name + "/comm")
			switch git := string(comm) == "git\n"; {
			case git && has(words("/proc/"+name+"/environ"), "ROOT="+l.f.Root):
				return []int{pid}
			case first || git:
				old[name] = true
			}
		}
	}
	return nil
}

func flat(groups map[string][]int) []int {
	all := []int{}
	for _, pids := range groups {
		all = append(all, pids...)
	}
	slices.Sort(all)
	return all
}

// fillDisk fills the disk of the data root except for that many bytes.
func (l *life) fillDisk(leave int64) string {
	if l.disk == "" {
		return ""
	}
	filler := filepath.Join(l.disk, "filler")
	undo := func() { _ = os.Remove(filler) }
	l.mu.Lock()
	l.undo = append(l.undo, undo)
	l.mu.Unlock()
	if err := fillUp(filler, leave); err != nil {
		return ""
	}
	l.filled = true
	return fmt.Sprintf("%d bytes are free", leave)
}

// limitDaemon limits the files that the daemon may open to that many more.
func (l *life) limitDaemon(more int) string {
	daemons := l.scene().daemons
	if len(daemons) == 0 {
		return ""
	}
	undo, err := limitFiles(daemons[0], more)
	if err != nil {
		return ""
	}
	l.mu.Lock()
	l.undo = append(l.undo, undo)
	l.mu.Unlock()
	return fmt.Sprintf("%d may open %d files more", daemons[0], more)
}

// heal undoes the faults that end.
func (l *life) heal() {
	l.mu.Lock()
	undo := l.undo
	l.undo = nil
	l.mu.Unlock()
	for _, f := range slices.Backward(undo) {
		f()
	}
}
