package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// life is one world of a soak, from its first run to its last look.
type life struct {
	*world
	soak *soak
	seed uint64
	disk string // the small disk under its data root; empty where none could be made

	filled bool // the disk was full at some time

	mu      sync.Mutex
	begin   time.Time
	log     []string        // what happened, in order
	wrong   []string        // what clients said that must not be
	made    map[string]bool // handles of runs that a client was told of
	saved   map[string]bool // refs of snapshots that a client was told of
	clients map[*exec.Cmd]bool
	undo    []func() // of faults that are not for ever

	past memory
}

func newLife(t *testing.T, s *soak, seed uint64) *life {
	l := &life{soak: s, seed: seed, begin: time.Now(), made: map[string]bool{}, saved: map[string]bool{}, clients: map[*exec.Cmd]bool{}}
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
	for i, kv := range l.f.Env { // the git that can be told to die costs a shell each time
		l.f.Env[i] = strings.Replace(kv, "PATH="+l.path("shim")+":", "PATH=", 1)
	}
	l.must("daemon", "stop") // the next one has the environment from here
	l.must("daemon", "start")
	return l
}

// live goes through the rounds of a life, and fails at the first one after which something is wrong.
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

// round lets clients and faults loose, undoes what faults there are, and returns when the clients have ended.
func (l *life) round(m mix) {
	l.soak.mu.Lock()
	l.soak.rounds++
	l.soak.mu.Unlock()
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

// clientLimit is the most that a command may take that was hurt.
const clientLimit = 90 * time.Second

// client runs a command, and looks at what it says.
func (l *life) client(args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "agency"), args...)
	var out, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.WaitDelay, cmd.Stdout, cmd.Stderr = l.f.Repo, l.f.Env, time.Second, &out, &stderr
	if err := cmd.Start(); err != nil {
		l.say("agency %q: %v", args, err)
		return
	}
	begin := time.Now()
	l.mu.Lock()
	l.clients[cmd] = true
	l.mu.Unlock()
	_ = cmd.Wait()
	l.mu.Lock()
	delete(l.clients, cmd)
	l.mu.Unlock()
	l.soak.count(l.soak.ran, args[0])
	said := stderr.String()
	l.note("agency %q: %s after %s: %.300s%.300s", args, cmd.ProcessState, time.Since(begin).Round(time.Millisecond), said, out.String())
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		l.say("agency %q hung", args)
	}
	for _, never := range []string{"panic:", "goroutine ", "E_INTERNAL", "DATA RACE"} {
		if strings.Contains(said, never) {
			l.say("agency %q: %s", args, said)
			break
		}
	}
	if cmd.ProcessState.ExitCode() == 0 {
		l.believe(args, out.String())
	}
}

var savedAs = regexp.MustCompile(`saved its work as (refs/agency/snapshots/\S+?)[,;.]?\s`)

// believe keeps what a client was told, to see that it stays so.
func (l *life) believe(args []string, out string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if args[0] == "run" {
		lines := strings.Split(strings.TrimSpace(out), "\n")
		l.made[lines[len(lines)-1]] = true
	}
	for _, match := range savedAs.FindAllStringSubmatch(out, -1) {
		l.saved[match[1]] = true
	}
}

// note adds a line to what happened.
func (l *life) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, fmt.Sprintf("%7.2f ", time.Since(l.begin).Seconds())+strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// say adds what is wrong for good.
func (l *life) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// fail tells of violations, what led to them, and how to repeat it.
func (l *life) fail(wrong []string) {
	l.soak.mu.Lock()
	l.soak.broken++
	l.soak.mu.Unlock()
	l.mu.Lock()
	happened := strings.Join(l.log[max(0, len(l.log)-150):], "\n")
	l.mu.Unlock()
	daemon := strings.Split(strings.TrimSpace(l.world.log()), "\n")
	l.t.Errorf("%s\n\nrepeat it: make crash-soak N=1 SEED=%d\n\nwhat happened last:\n%s\n\nthe daemon's log:\n%s", strings.Join(wrong, "\n"), l.seed,
		happened, strings.Join(daemon[max(0, len(daemon)-40):], "\n"))
}

// hit makes one fault.
func (l *life) hit(s step) {
	verb, what, _ := strings.Cut(s.what, " ")
	how := ""
	switch verb {
	case "kill":
		how = l.signal(what, s, syscall.SIGKILL)
	case "stop":
		if how = l.signal(what, s, syscall.SIGSTOP); how != "" {
			time.AfterFunc(s.lasts, func() { l.wake(how) })
		}
	case "delete":
		if os.Remove(filepath.Join(l.f.Data, what)) == nil {
			how = what
		}
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

// signal sends a signal to a process of a kind, for which it waits a moment. It returns the pid, and nothing if there was none.
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

// kind are the processes that a fault can hit.
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

// youngGits waits a moment for a git, which lives for a few milliseconds: only processes that begin meanwhile are looked at.
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

// fillDisk leaves so many bytes on the disk of the data root.
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

// limitDaemon lets the daemon open so many files more.
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

// heal undoes the faults that are not for ever.
func (l *life) heal() {
	l.mu.Lock()
	undo := l.undo
	l.undo = nil
	l.mu.Unlock()
	for _, f := range slices.Backward(undo) {
		f()
	}
}
