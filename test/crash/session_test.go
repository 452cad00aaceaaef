package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sessionView is a session as session show shows it.
type sessionView struct {
	Session struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"session"`
	Agents []struct {
		ID       string `json:"id"`
		Status   string `json:"status"`
		Error    string `json:"error"`
		Branch   string `json:"branch"`
		Attempts int    `json:"attempts"`
		RunID    string `json:"run_id"`
	} `json:"agents"`
}

// once makes a shell agent record when another one of the same name works at the same time. Its
// lock ends with its process.
const once = `exec 9>>$ROOT/lock-$1; flock -n 9 || echo $1 >>$ROOT/twice; `

// recorded makes a shell agent wait until its start is in the record: an agent that ends before
// that counts as never started.
const recorded = `until test -e $AGENCY_HOME/runs/$AGENCY_RUN_ID/attempts/$AGENCY_ATTEMPT/started.json; do sleep 0.01; done; `

// fourPlan is four agents in three waves. The second is ready and never ends by itself; the third
// loses its wrapper once.
const fourPlan = `
base: deps
max_parallel: 2
defaults: {runner: shell, headless: true}
agents:
  - {id: first, prompt: 'set -- first; %[1]s echo first >first.txt'}
  - {id: ready, runner: scripted, headless: false, after: [first], prompt: "write ready.txt ready\nready done | look\npause 600"}
  - id: lost
    after: [first]
    prompt: 'set -- lost; %[1]s echo lost >lost.txt; test -e $ROOT/was-lost || { %[2]s echo x >$ROOT/was-lost; kill -9 $PPID; sleep 600; }'
  - {id: last, after: [ready, lost], prompt: 'set -- last; %[1]s cat first.txt ready.txt lost.txt >last.txt'}
`

// sessionPoints are the points where a session can be interrupted.
var sessionPoints = []string{
	"scheduler.create.env", "scheduler.create.recorded", "scheduler.start.based", "scheduler.start.recorded", "scheduler.start.made",
	"scheduler.recorded", "scheduler.stop.recorded", "scheduler.stop.made", "scheduler.again.recorded", "scheduler.again.made", "scheduler.settled",
	"results.found", "results.written", "results.sent",
}

var sessionSample = []string{"scheduler.start.recorded/daemon", "scheduler.again.recorded/daemon", "scheduler.start.made/wrapper", "scheduler.stop.recorded/tmux", "results.sent/daemon"}

// A session has the same outcome, whichever process dies at any of its steps.
func TestSessionMatrix(t *testing.T) {
	t.Parallel()
	for _, point := range sessionPoints {
		for _, v := range victims() {
			name := point + "/" + v.name
			if !whole && !slices.Contains(sessionSample, name) {
				continue
			}
			t.Run(name, func(t *testing.T) { t.Parallel(); killSession(t, point, &v) })
		}
	}
}

func killSession(t *testing.T, point string, v *victim) {
	begin := time.Now()
	w := newWorld(t)
	w.write("plan.yaml", fmt.Sprintf(fourPlan, once, recorded))
	w.write("killpoint", point+" hold")
	w.start([]string{"session", "start", w.path("plan.yaml"), "--wait", "--timeout", "60s"})
	hit := w.path("killpoint.hit")
	w.await("the point "+point, func() bool { _, err := os.Lstat(hit); return err == nil })
	pids := v.pids(w)
	w.kill(pids)
	w.awaitDeath(pids)
	if err := os.Remove(hit); err != nil {
		t.Fatal(err)
	}
	w.awaitClient()
	c := cell{row: "session: " + point, victim: v.name, outcome: outcomeDone}
	died := len(pids) > 0
	wrong := w.fourComplete(v.name == "tmux" && died)
	switch {
	case len(wrong) > 0:
		t.Errorf("%s\nthe client said: %s\nthe log:\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
		c.outcome = outcomeViolation
	case !died:
		c.outcome = outcomeUnknown
	}
	c.took = time.Since(begin)
	note(c)
}

func (w *folder) log() string {
	log, _ := os.ReadFile(filepath.Join(w.f.Data, "logs", "agencyd.log"))
	return string(log)
}

// fourComplete waits for the session of fourPlan, starts it if it does not exist, and returns what
// is wrong with its outcome.
func (w *world) fourComplete(tmuxDied bool) []string {
	if r := w.f.Agency("session", "wait", "latest", "--timeout", "150s"); strings.Contains(r.Stderr, "E_SESSION_NOT_FOUND") {
		w.must("session", "start", w.path("plan.yaml"), "--wait", "--timeout", "60s")
	}
	wrong := []string{}
	s := w.sessionOf("latest")
	if s.Session.Status != "complete" {
		wrong = append(wrong, "the session is "+s.Session.Status)
	}
	for _, a := range s.Agents {
		if a.Status != "complete" {
			wrong = append(wrong, fmt.Sprintf("%s is %s: %s", a.ID, a.Status, a.Error))
		}
	}
	last := s.Agents[len(s.Agents)-1]
	if got, _ := os.ReadFile(filepath.Join(w.f.Data, "worktrees", w.fingerprint(), last.RunID, "last.txt")); string(got) != "first\nready\nlost\n" {
		wrong = append(wrong, fmt.Sprintf("the last agent made %q", got))
	}
	wrong = append(wrong, w.sessionsWell()...)
	wrong = append(wrong, w.endReported()...)
	return append(wrong, w.rest(tmuxDied)...)
}

// endReported returns what is wrong with what follows the end of the one session: a report, and one
// message.
func (w *client) endReported() []string {
	events := func(kind string) int { return strings.Count(w.must("events"), kind) }
	w.await("the report", func() bool { return events("session.reported") > 0 })
	wrong := []string{}
	if sent := events("msg type session.complete"); sent != 1 {
		wrong = append(wrong, fmt.Sprintf("the end was sent %d times", sent))
	}
	if _, err := os.Stat(filepath.Join(w.f.Repo, ".agency", "status", "active-session", "report.md")); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// fingerprint returns the folder of the repository's worktrees.
func (w *world) fingerprint() string {
	dirs, _ := filepath.Glob(filepath.Join(w.f.Data, "worktrees", "*"))
	if len(dirs) != 1 {
		w.t.Fatalf("worktrees of %d repositories", len(dirs))
	}
	return filepath.Base(dirs[0])
}

// sessionsWell returns what is wrong apart from the runs: agents that worked twice at a time,
// environments that are left.
func (w *client) sessionsWell() []string {
	wrong := []string{}
	if twice, err := os.ReadFile(w.path("twice")); err == nil {
		wrong = append(wrong, fmt.Sprintf("twice at a time: %q", twice))
	}
	// The environment is deleted right after the end is recorded, or at the next start.
	w.must("daemon", "stop")
	w.must("daemon", "start")
	if left, _ := filepath.Glob(filepath.Join(w.f.Data, "sessions", "*")); len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("left: %v", left))
	}
	return wrong
}

func (w *client) sessionOf(ref string) sessionView {
	w.t.Helper()
	var s sessionView
	if err := w.data(&s, "session", "show", ref); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// A cancelled session ends, with all its processes.
func TestSessionCancel(t *testing.T) {
	t.Parallel()
	for _, v := range victims() {
		if whole || v.name == "daemon" {
			t.Run(v.name, func(t *testing.T) { t.Parallel(); killCancel(t, &v) })
		}
	}
}

func killCancel(t *testing.T, v *victim) {
	begin := time.Now()
	w := newWorld(t)
	w.write("plan.yaml", "agents:\n  - {id: a, prompt: pause 600}\n  - {id: b, prompt: \"child\\npause 600\"}\n  - {id: c, prompt: say never, after: [a]}\n")
	w.must("session", "start", w.path("plan.yaml"))
	w.await("the agents", func() bool {
		runs, err := w.runs()
		return err == nil && len(runs) == 3 && !slices.ContainsFunc(runs, func(r runView) bool { return r.State != "running" })
	})
	w.hold("scheduler.changed", "session", "cancel", "latest")
	pids := v.pids(w)
	w.kill(pids)
	w.awaitDeath(pids)
	w.release()
	w.awaitClient()
	w.f.Agency("session", "cancel", "latest") // again, or for the first time
	w.f.Agency("session", "wait", "latest", "--timeout", "150s")
	wrong := append(w.sessionsWell(), w.rest(v.name == "tmux")...)
	if s := w.sessionOf("latest"); s.Session.Status != "cancelled" {
		wrong = append(wrong, fmt.Sprintf("the session is %+v", s))
	}
	c := cell{row: "session cancel: scheduler.changed", victim: v.name, outcome: outcomeDone}
	if len(wrong) > 0 {
		t.Errorf("%s\nthe client said: %s\nthe log:\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
		c.outcome = outcomeViolation
	}
	c.took = time.Since(begin)
	note(c)
}

// retryPoints are the points where a retry by a new plan can be interrupted.
var retryPoints = []string{"scheduler.create.env", "scheduler.create.recorded", "scheduler.start.recorded"}

// A retry by a new plan is there as a whole or not at all, with the complete agents that it takes
// over.
func TestSessionRetryByNewPlan(t *testing.T) {
	t.Parallel()
	for _, point := range retryPoints {
		for _, v := range victims() {
			if whole || point == "scheduler.create.recorded" && v.name == "daemon" {
				t.Run(point+"/"+v.name, func(t *testing.T) { t.Parallel(); killRetry(t, point, &v) })
			}
		}
	}
}

// retryPlan is a plan whose second agent does what is given, after one that stays as it is.
const retryPlan = "base: deps\ndefaults: {runner: shell, headless: true}\nagents:\n  - {id: kept, prompt: '%[1]s echo x >>$ROOT/kept'}\n  - {id: again, after: [kept], prompt: '%[2]s'}\n"

func killRetry(t *testing.T, point string, v *victim) {
	begin := time.Now()
	w := newWorld(t)
	w.write("plan.yaml", fmt.Sprintf(retryPlan, recorded, "exit 3"))
	w.f.Agency("session", "start", w.path("plan.yaml"), "--wait", "--timeout", "60s")
	failed := w.sessionOf("latest")
	if failed.Session.Status != "failed" {
		t.Fatalf("the session is %+v", failed)
	}
	w.write("plan.yaml", fmt.Sprintf(retryPlan, recorded, "true"))
	retry := []string{"session", "retry", failed.Session.ID, "--plan-changed", "new"}
	w.hold(point, retry...)
	pids := v.pids(w)
	w.kill(pids)
	w.awaitDeath(pids)
	w.release()
	w.awaitClient()
	if w.sessionOf("latest").Session.ID == failed.Session.ID {
		w.must(retry...)
	}
	w.f.Agency("session", "wait", "latest", "--timeout", "150s")
	wrong := append(w.sessionsWell(), w.rest(v.name == "tmux")...)
	s := w.sessionOf("latest")
	if s.Session.Status != "complete" || s.Agents[0].RunID != failed.Agents[0].RunID || s.Agents[1].RunID == failed.Agents[1].RunID {
		wrong = append(wrong, fmt.Sprintf("the session is %+v after %+v", s, failed))
	}
	if kept, _ := os.ReadFile(w.path("kept")); string(kept) != "x\n" {
		wrong = append(wrong, fmt.Sprintf("the agent that stays worked %q", kept))
	}
	if all := strings.Count(w.must("session", "ls"), "\n") - 1; all != 2 { // without the heading
		wrong = append(wrong, fmt.Sprintf("there are %d sessions", all))
	}
	c := cell{row: "session retry: " + point, victim: v.name, outcome: outcomeDone}
	if len(wrong) > 0 {
		t.Errorf("%s\nthe client said: %s\nthe log:\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
		c.outcome = outcomeViolation
	}
	c.took = time.Since(begin)
	note(c)
}

// A reboot in the middle of the second wave costs the agents only time.
func TestSessionReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("plan.yaml", fmt.Sprintf(fourPlan, once, recorded))
	w.write("was-lost", "")
	w.write("killpoint", "scheduler.stop.recorded hold") // the ready one is about to be stopped, the other one works or has ended
	w.must("session", "start", w.path("plan.yaml"))
	w.await("the second wave", func() bool { _, err := os.Lstat(w.path("killpoint.hit")); return err == nil })
	w.reboot()
	w.release()
	if wrong := w.fourComplete(true); len(wrong) > 0 {
		t.Fatalf("%s\n%s", strings.Join(wrong, "\n"), w.log())
	}
}

// A disk that is full while a session is at work costs the session only time, if it has room again
// soon.
func TestSessionFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for _, point := range []string{"scheduler.start.based", "scheduler.start.recorded", "scheduler.start.made", "scheduler.settled"} {
		for _, room := range []int64{0, 64 << 10} {
			if whole || point == "scheduler.start.recorded" && room == 0 {
				t.Run(fmt.Sprintf("%s with %d KiB", point, room>>10), func(t *testing.T) { t.Parallel(); fullDiskSession(t, point, room) })
			}
		}
	}
}

func fullDiskSession(t *testing.T, point string, room int64) {
	disk := t.TempDir()
	if err := mount(disk); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { unmount(disk) })
	w := newWorldAt(t, disk)
	w.must("wait", "other", "--for", "needs-input", "--timeout", "20s") // it writes until then
	w.write("plan.yaml", "defaults: {runner: shell, headless: true}\nagents: [{id: a, prompt: 'true'}, {id: b, prompt: 'true', after: [a]}]\n")
	w.hold(point, "session", "start", w.path("plan.yaml"))
	filler := filepath.Join(disk, "filler")
	fill(t, filler, room)
	w.release()
	w.f.Agency("session", "wait", "latest", "--timeout", "3s") // it may wait for room
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.f.Agency("session", "wait", "latest", "--timeout", "150s")
	w.awaitClient()
	wrong := append(w.sessionsWell(), w.rest(false)...)
	s := w.sessionOf("latest")
	if s.Session.Status != "complete" {
		wrong = append(wrong, fmt.Sprintf("the session is %+v", s))
	}
	if len(wrong) > 0 {
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), w.log())
	}
}

// randomPlan returns a plan whose outcome does not depend on time: the agents that fail are drawn,
// and only their dependents are skipped.
func randomPlan(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "base: deps\non_failure: continue\nmax_parallel: %d\ndefaults: {runner: shell, headless: true}\nagents:\n", 1+r.IntN(3))
	for i := range 3 + r.IntN(4) {
		after := []string{}
		for j := range i {
			if r.IntN(3) == 0 {
				after = append(after, fmt.Sprint("n", j))
			}
		}
		end := "true"
		if r.IntN(6) == 0 {
			end = "exit 3"
		}
		fmt.Fprintf(&b, "  - {id: n%d, after: [%s], prompt: 'set -- $MARK-n%d; %s rm -f n%d.txt; cat n*.txt >.agency/seen 2>/dev/null; sleep 0.%d; echo %d >n%d.txt; %s'}\n",
			i, strings.Join(after, ", "), i, once, i, r.IntN(3), i, i, end)
	}
	return b.String()
}

// outcomeOf returns the outcome of a session: statuses, reasons, and what each agent saw of its
// dependencies.
func (w *world) outcomeOf(s *sessionView) string {
	lines := []string{s.Session.Status}
	gone := map[string]bool{}
	for _, a := range s.Agents {
		gone[a.ID] = a.Status == "failed" || a.Status == "cancelled"
	}
	for _, a := range s.Agents {
		// Of several failed agents the first one is named, which depends on time.
		if name := strings.TrimSuffix(strings.TrimPrefix(a.Error, "dependency "), " failed"); gone[name] {
			a.Error = "one that it comes after failed"
		}
		seen, _ := os.ReadFile(filepath.Join(w.f.Data, "worktrees", w.fingerprint(), a.RunID, ".agency", "seen"))
		lines = append(lines, fmt.Sprintf("%s %s %s %q", a.ID, a.Status, a.Error, seen))
	}
	return strings.Join(lines, "\n")
}

// Random plans have the same outcome with a fault at a random time as without one.
func TestSessionFaults(t *testing.T) {
	t.Parallel()
	plans := 3
	if whole {
		plans = 200
	}
	for seed := range plans {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); faultySession(t, uint64(seed)) })
	}
}

func faultySession(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.write("plan.yaml", randomPlan(r))
	run := func(mark string) string {
		w.f.Env = append(w.f.Env, "MARK="+mark)
		return strings.TrimSpace(w.must("session", "start", w.path("plan.yaml")))
	}
	begin := time.Now()
	id := run("a")
	w.f.Agency("session", "wait", id, "--timeout", "150s")
	took := time.Since(begin)
	calm := w.sessionOf(id)
	want := w.outcomeOf(&calm)

	id = run("b")
	what := rand.New(rand.NewPCG(seed, 2)).IntN(4)
	time.Sleep(time.Duration(r.Int64N(int64(took)))) // the time of the fault is random
	switch what {
	case 0:
		w.kill(w.daemons())
	case 1:
		w.kill(w.wrapper(w.newest()))
	case 2:
		w.kill(w.tmuxServer())
	case 3:
		w.reboot()
	}
	w.f.Agency("session", "wait", id, "--timeout", "150s")
	faulty := w.sessionOf(id)
	wrong := append(w.sessionsWell(), w.rest(what >= 2)...)
	if got := w.outcomeOf(&faulty); got != want {
		wrong = append(wrong, fmt.Sprintf("it came to\n%s\nand without a fault to\n%s", got, want))
	}
	if len(wrong) > 0 {
		t.Errorf("seed %d, fault %d: %s\nthe plan:\n%s\nthe log:\n%s", seed, what, strings.Join(wrong, "\n"), randomPlan(rand.New(rand.NewPCG(seed, 1))), w.log())
	}
}

// A manual restart that is interrupted between its two halves costs the session only time.
func TestSessionRestartCutOff(t *testing.T) {
	t.Parallel()
	if !whole {
		t.Skip("make crash runs this: the session waits half a minute for the other half")
	}
	w := newWorld(t)
	w.write("plan.yaml", fmt.Sprintf("defaults: {runner: shell, headless: true}\nagents:\n"+
		"  - {id: a, prompt: 'set -- a; %[1]s test ! -e $ROOT/enough || exit 0; echo x >$ROOT/began; sleep 600'}\n  - {id: b, prompt: 'true', after: [a]}\n", once))
	id := strings.TrimSpace(w.must("session", "start", w.path("plan.yaml")))
	w.await("the agent", func() bool { _, err := os.Lstat(w.path("began")); return err == nil })
	// The agent may work before its start is in the record, and until then it cannot be restarted.
	run := w.sessionOf(id).Agents[0].RunID
	w.must("wait", run, "--for", "active,working", "--timeout", "20s")
	w.write("enough", "")
	w.write("killpoint", "resume.saved")
	w.start([]string{"resume", "--restart", run})
	w.await("the point", func() bool { _, err := os.Lstat(w.path("killpoint.hit")); return err == nil })
	w.awaitClient()
	w.f.Agency("session", "wait", id, "--timeout", "150s")
	s := w.sessionOf(id)
	wrong := append(w.sessionsWell(), w.rest(false)...)
	if s.Session.Status != "complete" || s.Agents[0].Status != "complete" || s.Agents[0].Attempts != 2 || s.Agents[1].Status != "complete" {
		wrong = append(wrong, fmt.Sprintf("it came to %+v", s))
	}
	if len(wrong) > 0 {
		t.Errorf("%s\n%s\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
	}
}
