package crash_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// These are the outcomes of an interrupted operation.
const (
	outcomeDone      = "done"
	outcomeUndone    = "undone"
	outcomeFailed    = "failed" // and the record shows it
	outcomeViolation = "VIOLATION"
	outcomeUnknown   = "-" // the victim does not exist at this point
)

type cell struct {
	row, victim string
	outcome     string
	took        time.Duration
}

var (
	resultsMu sync.Mutex
	results   []cell
)

func note(c cell) {
	resultsMu.Lock()
	defer resultsMu.Unlock()
	results = append(results, c)
}

// sample lists the cells that every run of the tests covers.
var sample = []string{
	"run/create.worktree.made/daemon", "run/wrapper.forked/wrapper", "run/launch.session/tmux", "stop/stop.intended/daemon",
	"rm/worktree.going/daemon", "rm/remove.intended/daemon", "exit/wrapper.recorded/wrapper", "resume/resume.begun/daemon", "run/git checkout --quiet --no-recurse-submodules within/daemon",
	"rm/git update-ref within/daemon", "rm/git branch -D within/git",
	"run in a sandbox/create.scaffold.recorded/daemon", "stop in a sandbox/stop.delivered/daemon",
	"run with a setup/setup.started/daemon", "update/daemon.drained/daemon",
	"merge/git update-ref --create-reflog after/git", "merge into a checkout/git merge --ff-only within/daemon", "merge whose git is killed/land.unpinned/daemon",
	"merge --undo into a checkout/unland.moved/daemon", "merge with checks/check.started/check", "merge with checks/check.recorded/daemon",
	"merge and remove/remove.saved/daemon", "answer in its protocol/speech.intended/wrapper", "another wrapper/replace.begun/daemon",
	"another mode/stop.ended/daemon", "another mode/wrapper.launched/wrapper", "another mode/resume.begun/daemon",
	"rotation of a conversation/speech.checkpointed/wrapper", "refusal in its protocol/network.kept/wrapper",
}

// TestMatrix kills each victim at each point of each operation.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, op := range append(operations(), landingOperations()...) {
		for _, point := range op.points {
			for _, v := range append(victims(), op.more...) {
				name := op.name + "/" + point + "/" + v.name
				if !whole && !slices.Contains(sample, name) {
					continue
				}
				t.Run(name, func(t *testing.T) { t.Parallel(); killAt(t, &op, point, &v) })
			}
		}
	}
	for _, g := range gitSteps() {
		for _, who := range []string{"git", "daemon"} {
			name := g.op.name + "/git " + g.args + " " + g.when + "/" + who
			if !whole && !slices.Contains(sample, name) {
				continue
			}
			t.Run(name, func(t *testing.T) { t.Parallel(); killGit(t, &g, who) })
		}
	}
}

// killAt tests one cell: the operation is held at the point, and the victim is killed.
func killAt(t *testing.T, op *operation, point string, v *victim) {
	begin := time.Now()
	w := newWorld(t)
	if op.repo != nil {
		op.repo(w)
	}
	if op.prepare != nil {
		op.prepare(w)
	}
	armed, hit := w.path("killpoint"), w.path("killpoint.hit")
	how := " hold"
	self := v.name == "wrapper" && inWrapper(point) || v.name == "daemon" && !inWrapper(point)
	if self {
		how = ""
	}
	if err := os.WriteFile(armed, []byte(point+how), 0o600); err != nil {
		t.Fatal(err)
	}
	w.begin(op)
	w.await("the point "+point, func() bool { _, err := os.Lstat(hit); return err == nil })
	c := cell{row: op.name + ": " + point, victim: v.name}
	died := true
	if self {
		var pid int
		w.await("the victim", func() bool {
			data, _ := os.ReadFile(hit)
			n, _ := fmt.Sscan(string(data), &pid)
			return n == 1
		})
		w.awaitDeath([]int{pid})
	} else {
		pids := v.pids(w)
		died = len(pids) > 0
		w.kill(pids)
		w.awaitDeath(pids)
	}
	if err := os.Remove(hit); err != nil {
		t.Fatal(err)
	}
	c.outcome = w.decide(op, v.name == "tmux" && died)
	if !died && c.outcome != outcomeViolation {
		c.outcome = outcomeUnknown
	}
	c.took = time.Since(begin)
	note(c)
}

// killGit tests one cell: a git process of the operation dies, or its daemon dies while git works
// on.
func killGit(t *testing.T, g *gitStep, who string) {
	begin := time.Now()
	w := newWorld(t)
	if g.op.repo != nil {
		g.op.repo(w)
	}
	if g.op.prepare != nil {
		g.op.prepare(w)
	}
	w.write("gitkill", who+" "+g.when+" "+g.args+"\n")
	w.begin(g.op)
	w.await("git "+g.args, func() bool { _, err := os.Lstat(w.path("gitkill.hit")); return err == nil })
	outcome := w.decide(g.op, false)
	victim := "git"
	if who == "daemon" {
		victim = "daemon"
	}
	note(cell{g.op.name + ": git " + g.args + ", " + g.when, victim, outcome, time.Since(begin)})
}

func (w *world) begin(op *operation) {
	if op.command != nil {
		w.start(op.command)
	} else {
		op.trigger(w)
	}
}

// decide restarts agency, checks everything, returns the outcome of the operation, and repeats it.
func (w *world) decide(op *operation, tmuxDied bool) string {
	t := w.t
	w.awaitClient()
	said := w.output.String()
	wrong := w.rest(tmuxDied)
	target := w.target()
	outcome := outcomeUndone
	switch {
	case target == nil, target.RemovedAt != nil && !op.removes:
	case op.done(target):
		outcome = outcomeDone
	case target.State == "failed":
		outcome = outcomeFailed
	}
	if target != nil && op.prepare != nil && !w.hasWork(target) {
		wrong = append(wrong, "the work of the agent is lost")
	}
	if len(wrong) == 0 {
		wrong = append(w.repeat(op, target), w.rest(tmuxDied)...)
	}
	wrong = append(wrong, w.database()...)
	if len(wrong) > 0 {
		log, _ := os.ReadFile(filepath.Join(w.f.Data, "logs", "agencyd.log"))
		t.Errorf("%s, and then:\n%s\nthe client said: %s\nthe log:\n%s", outcome, strings.Join(wrong, "\n"), said, log)
		return outcomeViolation
	}
	return outcome
}

// repeat requests the operation again, and then every following one until the name is free and used
// again.
func (w *world) repeat(op *operation, target *runView) []string {
	wrong := []string{}
	expect := func(exit int, code string, args ...string) {
		r := w.f.Agency(args...)
		if r.Exit != exit || !strings.Contains(r.Stderr, code) {
			wrong = append(wrong, fmt.Sprintf("then agency %v: exit %d instead of %d %s: %s%s", args, r.Exit, exit, code, r.Stdout, r.Stderr))
		}
	}
	if w.again != nil {
		wrong = append(wrong, w.repeatLanding()...)
	}
	if target != nil && target.RemovedAt == nil {
		switch {
		case op.command != nil && op.command[0] == "run":
			expect(1, "E_NAME_EXISTS", op.command...)
		case op.name == "resume" && target.final():
			expect(0, "", op.command...)
			target.State = "running"
		case op.name == "another mode" && !op.done(target):
			expect(0, "", op.command...)
			target.State = "running"
		case op.name == "stop" && target.final():
			expect(0, "", "stop", "target") // it had ended already
		}
		if target.State == "running" {
			expect(0, "", "stop", "target")
			if now := w.target(); now.State != "killed" {
				wrong = append(wrong, "a stop made it "+now.State)
			}
		}
		expect(0, "", "rm", "--delete-branch", "target")
		if op.prepare != nil && !w.hasWork(target) {
			wrong = append(wrong, "the work of the agent is lost after rm")
		}
	}
	if target != nil {
		expect(0, "", "rm", target.ID)
	}
	expect(0, "", "run", "--name", "target", "--prompt", asks)
	expect(0, "", "stop", "target")
	expect(0, "", "rm", "target")
	return wrong
}

// printTable prints the outcome of each cell.
func printTable(out io.Writer) {
	columns := []string{"daemon", "wrapper", "tmux", "client", "git", "check"}
	rows, count, total := []string{}, map[string]int{}, time.Duration(0)
	at := map[string]cell{}
	for _, c := range results {
		if !slices.Contains(rows, c.row) {
			rows = append(rows, c.row)
		}
		at[c.row+"\x00"+c.victim] = c
		count[c.outcome]++
		total += c.took
	}
	slices.Sort(rows)
	_, _ = fmt.Fprintf(out, "\n%-46s %-10s %-10s %-10s %-10s %-10s %-10s %s\n", "killed at", columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], "seconds")
	for _, row := range rows {
		_, _ = fmt.Fprintf(out, "%-46s", row)
		var took time.Duration
		for _, column := range columns {
			c := at[row+"\x00"+column]
			took += c.took
			_, _ = fmt.Fprintf(out, " %-10s", c.outcome)
		}
		_, _ = fmt.Fprintf(out, " %.1f\n", took.Seconds())
	}
	_, _ = fmt.Fprintf(out, "\n%d cells: %d done, %d undone, %d failed, %d without a victim, %d violations; %.0f s of work\n", len(results),
		count[outcomeDone], count[outcomeUndone], count[outcomeFailed], count[outcomeUnknown], count[outcomeViolation], total.Seconds())
}
