package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// operation is an operation of a user or an agent on the run "target", with the points where it can
// be interrupted.
type operation struct {
	name    string
	points  []string
	repo    func(w *world) // prepares the repository
	prepare func(w *world)
	// command is the client's command; without one, trigger starts the operation.
	command []string
	trigger func(w *world)
	// done reports whether the target is as the operation intends.
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

// oldDaemon leaves an idle daemon of another version, which the next command replaces.
func oldDaemon(w *world) {
	stoppedTarget(w)
	w.must("stop", "other")
	w.must("rm", "other")
	w.must("daemon", "stop")
	if r := w.f.Command("", filepath.Join(bin, "old", "agency"), "daemon", "start"); r.Exit != 0 {
		w.t.Fatalf("start the old daemon: %s%s", r.Stdout, r.Stderr)
	}
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

var starting = []string{"launch.written", "launch.session", "wrapper.begun", "wrapper.locked", "wrapper.launched", "wrapper.forked", "wrapper.started"}

func operations() []operation {
	running := func(r *runView) bool { return r.State == "running" }
	return []operation{
		{
			name:    "run",
			points:  join([]string{"create.inserted", "worktree.branched"}, []string{"create.files.made", "create.worktree.made"}, steps("create", "scaffold"), starting, []string{"wrapper.waits", "create.session.made"}, steps("create", "started")),
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    running,
		},
		{
			name:    "run that cannot start",
			points:  []string{"undo.intended", "undo.ended", "undo.worktree", "undo.files", "undo.recorded"},
			command: []string{"run", "--name", "target", "--runner", "broken", "--prompt", asks},
			done:    func(*runView) bool { return false },
		},
		{
			name:    "run with a setup",
			points:  join([]string{"setup.shared", "setup.started", "setup.ended"}, steps("create", "setup")),
			repo:    func(w *world) { w.setup(`sleep 600 & echo $! >setup.txt`) },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    running,
		},
		{
			name:    "run whose setup fails",
			points:  []string{"setup.ended", "fail.ended", "fail.recorded"},
			repo:    func(w *world) { w.setup(`! rm "$ROOT/fail" || exit 3`) },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    func(*runView) bool { return false },
		},
		{
			name:   "resume with a setup",
			points: join([]string{"setup.started", "setup.ended"}, steps("resume", "setup")),
			repo: func(w *world) {
				w.setup(`sleep 600 & ! rm "$ROOT/fail" || exit 3`)
				if r := w.f.Agency("run", "--name", "target", "--prompt", asks); !strings.Contains(r.Stderr, "E_SETUP_FAILED") {
					w.t.Fatalf("the setup did not fail: %s", r.Stderr)
				}
			},
			command: []string{"resume", "target"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 },
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
			points:  []string{"remove.intended", "remove.session", "remove.saved", "worktree.going", "worktree.files", "remove.worktree", "remove.branch", "remove.recorded"},
			prepare: stoppedTarget,
			command: []string{"rm", "--delete-branch", "target"},
			done:    func(r *runView) bool { return r.RemovedAt != nil },
		},
		{
			name:    "resume",
			points:  join([]string{"resume.saved", "resume.begun", "resume.token"}, steps("resume", "archive", "files"), starting, []string{"resume.session.made"}, steps("resume", "started")),
			prepare: stoppedTarget,
			command: []string{"resume", "--fresh", "target"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 },
		},
		{
			name:    "snapshot", // the git steps below interrupt it
			prepare: stoppedTarget,
			command: []string{"snapshot", "target"},
			done:    func(r *runView) bool { return r.State == "killed" },
		},
		{
			name:   "resume that cannot start",
			points: []string{"undo.intended", "fail.ended", "fail.recorded"},
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
			name: "update",
			points: []string{
				"daemon.stopping", "daemon.drained", "daemon.ended", "daemon.locked", "daemon.opened", "daemon.listening", "daemon.reconciled", "daemon.recorded",
			},
			prepare: oldDaemon,
			command: []string{"ls"},
			done:    func(r *runView) bool { return r.State == "killed" },
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

// victim is a process that dies while an operation is held at a point.
type victim struct {
	name string
	// pids returns its processes; none means that it does not exist at this point.
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
				return nil // its pid may belong to another process by now
			default:
				return []int{w.client.Process.Pid}
			}
		}},
	}
}

// gitSteps returns the git processes that are killed, or whose daemon is, before, during and after
// their work. During it, they leave the lock of the ref that they write, and die with their daemon.
func gitSteps() []gitStep {
	all := []gitStep{}
	ops := map[string]*operation{}
	for _, op := range operations() {
		ops[op.name] = &op
	}
	for _, s := range []struct {
		op    *operation
		args  string
		locks bool // a ref whose lock it leaves when it is killed
	}{
		{ops["run"], "branch --no-track", true},
		{ops["run"], "worktree add", false},
		{ops["rm"], "update-ref", true},
		{ops["rm"], "worktree remove", false},
		{ops["rm"], "branch -D", true},
		{ops["snapshot"], "commit-tree", false},
		{ops["snapshot"], "update-ref", true},
		{ops["resume"], "update-ref", true},
	} {
		for _, when := range []string{"before", "after"} {
			all = append(all, gitStep{s.op, s.args, when})
		}
		if s.locks {
			all = append(all, gitStep{s.op, s.args, "within"})
		}
	}
	return all
}

type gitStep struct {
	op         *operation
	args, when string
}

// shim is a git that reads the file gitkill once: as the file says, it dies, or kills its parent
// and works on.
const shim = `#!/bin/sh
armed=$ROOT/gitkill
if [ -f "$armed" ]; then
	read -r who when what <"$armed"
	case " $* " in
	*" $what "*)
		if mv "$armed" "$armed.hit" 2>/dev/null; then
			victim=$$
			[ "$who" = git ] || victim=$PPID
			if [ "$when" = within ]; then
				common=$("$REAL_GIT" rev-parse --path-format=absolute --git-common-dir)
				for ref; do
					case $ref in
					agency/*) ref=refs/heads/$ref ;;
					refs/agency/*) ;;
					*) continue ;;
					esac
					mkdir -p "$common/${ref%/*}"
					: >"$common/$ref.lock"
				done
				kill -9 "$victim" $$
			fi
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

// setup gives the repository a trusted setup script, which also finds a file "fail" once.
func (w *world) setup(script string) {
	w.write("fail", "")
	path := filepath.Join(w.f.Repo, "agency.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[scripts]\nsetup = [\"sh\", \"-c\", '''%s''']\n", script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.must("trust")
}

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
