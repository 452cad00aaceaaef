package crash_test

import (
	"os"
	"path/filepath"
	"syscall"
)

// operation is something that a user or an agent does to the run "target", and the places where it can be cut off.
type operation struct {
	name    string
	points  []string
	prepare func(w *world)
	// command is what the client runs; without one, trigger makes it happen.
	command []string
	trigger func(w *world)
	// done says whether the target is as the operation wants it.
	done func(r *runView) bool
}

const (
	asks  = "write work.txt precious\nask ready?\n"
	waits = "write work.txt precious\nchild\nwait-file "
)

func runTarget(w *world) {
	w.must("run", "--name", "target", "--prompt", asks)
	w.await("the agent's work", func() bool { return w.hasWork(w.target()) })
}

func stoppedTarget(w *world) {
	runTarget(w)
	w.must("stop", "target")
}

func steps(of string, names ...string) []string {
	points := []string{}
	for _, name := range names {
		points = append(points, of+"."+name+".made", of+"."+name+".recorded")
	}
	return points
}

func join(lists ...[]string) []string {
	all := []string{}
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

var starting = []string{"launch.written", "launch.session", "wrapper.locked", "wrapper.launched", "wrapper.forked", "wrapper.started"}

func operations() []operation {
	running := func(r *runView) bool { return r.State == "running" }
	return []operation{
		{
			name:    "run",
			points:  join([]string{"create.inserted", "worktree.branched"}, steps("create", "files", "worktree", "scaffold"), starting, steps("create", "session", "started")),
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    running,
		},
		{
			name:    "run that cannot start",
			points:  []string{"undo.ended", "undo.worktree", "undo.files", "undo.recorded"},
			command: []string{"run", "--name", "target", "--runner", "broken", "--prompt", asks},
			done:    func(*runView) bool { return false },
		},
		{
			name:    "stop",
			points:  []string{"stop.intended", "stop.told", "stop.ended", "stop.session"},
			prepare: runTarget,
			command: []string{"stop", "target"},
			done:    func(r *runView) bool { return r.State == "killed" },
		},
		{
			name:   "exit",
			points: []string{"wrapper.exited", "wrapper.code", "wrapper.recorded", "wrapper.alone", "wrapper.told"},
			prepare: func(w *world) {
				w.must("run", "--name", "target", "--prompt", waits+w.path("go"))
				w.await("the agent's work", func() bool { return w.hasWork(w.target()) && len(w.marked(w.target().ID)) > 2 })
			},
			trigger: func(w *world) { w.write("go", "") },
			done:    func(r *runView) bool { return r.State == "completed" },
		},
		{
			name:    "rm",
			points:  []string{"remove.session", "remove.saved", "worktree.going", "worktree.files", "remove.worktree", "remove.branch", "remove.recorded"},
			prepare: stoppedTarget,
			command: []string{"rm", "--delete-branch", "target"},
			done:    func(r *runView) bool { return r.RemovedAt != nil },
		},
		{
			name:    "resume",
			points:  join([]string{"resume.saved", "resume.begun", "resume.token"}, steps("resume", "archive", "files"), starting, steps("resume", "session", "started")),
			prepare: stoppedTarget,
			command: []string{"resume", "--fresh", "target"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 },
		},
		{
			name:   "resume that cannot start",
			points: []string{"fail.ended", "fail.recorded"},
			prepare: func(w *world) {
				w.must("run", "--name", "target", "--runner", "fragile", "--prompt", asks)
				w.await("the agent's work", func() bool { return w.hasWork(w.target()) })
				w.must("stop", "target")
				w.script("fragile", "#!/nonexistent/interpreter\n")
			},
			command: []string{"resume", "target"},
			done:    func(*runView) bool { return false },
		},
		{
			name:    "loss",
			points:  []string{"settle.ended", "settle.recorded"},
			prepare: runTarget,
			trigger: func(w *world) { w.kill(w.wrapper(w.target().ID)) },
			done:    func(r *runView) bool { return r.State == "failed" && r.ErrorCode == "E_RUNNER_DISAPPEARED" },
		},
		{
			name:    "daemon start",
			points:  []string{"daemon.locked", "daemon.opened", "daemon.listening", "daemon.reconciled", "daemon.recorded"},
			prepare: func(w *world) { runTarget(w); w.must("daemon", "stop") },
			command: []string{"ls"},
			done:    running,
		},
		{
			name:    "daemon stop",
			points:  []string{"daemon.stopping", "daemon.drained", "daemon.ended"},
			prepare: runTarget,
			command: []string{"daemon", "stop"},
			done:    running,
		},
	}
}

// victim is what dies while an operation stands at a point.
type victim struct {
	name string
	// pids finds it; none means that it does not exist at this point.
	pids func(w *world) []int
}

func victims() []victim {
	return []victim{
		{"daemon", func(w *world) []int { return w.daemons() }},
		{"wrapper", func(w *world) []int {
			if r := w.newest(); r != "" {
				return w.wrapper(r)
			}
			return nil
		}},
		{"tmux", func(w *world) []int { return w.tmuxServer() }},
		{"client", func(w *world) []int {
			if w.client == nil {
				return nil
			}
			select {
			case <-w.ended:
				return nil // its pid may be somebody else's by now
			default:
				return []int{w.client.Process.Pid}
			}
		}},
	}
}

// gitSteps are the git processes that are killed, or whose daemon is, before and after they do their work.
func gitSteps() []gitStep {
	all := []gitStep{}
	ops := operations()
	for _, s := range []struct {
		op   *operation
		args string
	}{{&ops[0], "branch --no-track"}, {&ops[0], "worktree add"}, {&ops[4], "update-ref"}, {&ops[4], "worktree remove"}, {&ops[4], "branch -D"}} {
		for _, when := range []string{"before", "after"} {
			all = append(all, gitStep{s.op, s.args, when})
		}
	}
	return all
}

type gitStep struct {
	op         *operation
	args, when string
}

// shim is a git that dies, or kills its parent and works on, when the file gitkill says so. The file is taken once.
const shim = `#!/bin/sh
armed=$ROOT/gitkill
if [ -f "$armed" ]; then
	read -r who when what <"$armed"
	case " $* " in
	*" $what "*)
		if mv "$armed" "$armed.hit" 2>/dev/null; then
			victim=$$
			[ "$who" = git ] || victim=$PPID
			[ "$when" = before ] || "$REAL_GIT" "$@"
			kill -9 "$victim"
			[ "$when" = before ] || exit 0
			sleep 0.5
		fi
		;;
	esac
fi
exec "$REAL_GIT" "$@"
`

func (w *world) script(name, text string) {
	w.write(name, text)
	if err := os.Chmod(w.path(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.f.Root, name) }

func (w *world) kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
