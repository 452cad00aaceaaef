package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agency/test/fixture"
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
	done    func(r *runView) bool
	removes bool     // the target is removed when it is done
	more    []victim // beside the usual ones
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
	return slices.Concat(creations(), standbys(), confined(), conversations(), resumptions(), ends(), daemonOperations())
}

// creations are the operations that start a run.
func creations() []operation {
	return []operation{
		{
			name:    "run",
			points:  join([]string{"create.inserted", "worktree.laid", "worktree.branched"}, []string{"create.files.made", "create.worktree.made"}, steps("create", "scaffold"), starting, []string{"wrapper.waits", "create.session.made"}, steps("create", "started")),
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:    "run whose worktree git makes",
			points:  []string{"worktree.branched", "create.worktree.made"},
			repo:    func(w *world) { w.f.Command("", "git", "config", "core.sharedRepository", "group") },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:    "run with limits",
			points:  []string{"wrapper.limit", "wrapper.limited"},
			command: []string{"run", "--name", "target", "--memory", "2g", "--pids", "500", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:    "run that cannot start",
			points:  []string{"undo.intended", "processes.named", "undo.ended", "branch.undoing", "undo.worktree", "undo.files", "undo.recorded"},
			command: []string{"run", "--name", "target", "--runner", "broken", "--prompt", asks},
			done:    func(*runView) bool { return false },
		},
		{
			name:    "run with a setup",
			points:  join([]string{"setup.shared", "setup.started", "setup.ended"}, steps("create", "setup")),
			repo:    func(w *world) { w.setup(`sleep 600 & echo $! >setup.txt`) },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:    "run whose setup fails",
			points:  []string{"setup.ended", "fail.ended", "fail.recorded"},
			repo:    func(w *world) { w.setup(`! rm "$ROOT/fail" || exit 3`) },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    func(*runView) bool { return false },
		},
	}
}

// standbys are the operations that make a worktree ahead and take it.
func standbys() []operation {
	return []operation{
		{
			name:    "run from a standby",
			points:  join([]string{"create.inserted", "worktree.branched", "standby.taken"}, []string{"create.files.made", "create.worktree.made"}, steps("create", "scaffold"), []string{"wrapper.waits", "wrapper.forked"}, steps("create", "started")),
			repo:    func(w *world) { w.standby(600); w.awaitStandby() },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:   "run from a standby at another commit",
			points: []string{"standby.moving", "create.inserted"},
			repo: func(w *world) {
				w.standby(600)
				w.awaitStandby()
				w.f.Command("", "git", "commit", "-q", "--allow-empty", "-m", "another")
			},
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:   "run after the setup changed",
			points: []string{"standby.removed"},
			repo: func(w *world) {
				w.standby(600)
				w.awaitStandby()
				w.standby(601)
			},
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
		{
			name:    "standby",
			points:  []string{"standby.intended", "standby.added", "standby.made", "setup.started", "standby.setup", "standby.recorded"},
			repo:    func(w *world) { w.standby(600) },
			command: []string{"run", "--name", "target", "--prompt", asks},
			done:    isRunning,
		},
	}
}

// resumptions are the operations that begin another attempt.
func resumptions() []operation {
	return []operation{
		{
			name:    "resume",
			points:  join([]string{"resume.saved", "resume.begun", "resume.token"}, steps("resume", "archive", "files"), starting, []string{"resume.session.made"}, steps("resume", "started")),
			prepare: stoppedTarget,
			command: []string{"resume", "--fresh", "target"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 },
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
	}
}

// ends are the operations that end a run, or save and remove its work.
func ends() []operation {
	return []operation{
		{
			name:    "stop",
			points:  []string{"stop.intended", "stop.delivered", "stop.ended", "stop.session"},
			prepare: runTarget,
			command: []string{"stop", "target"},
			done:    func(r *runView) bool { return r.State == "killed" },
		},
		{
			name:   "exit",
			points: []string{"wrapper.exited", "wrapper.code", "wrapper.recorded", "wrapper.alone", "wrapper.unlimited", "wrapper.reported"},
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
			removes: true,
		},
		{
			name:    "snapshot", // the git steps below interrupt it
			prepare: stoppedTarget,
			command: []string{"snapshot", "target"},
			done:    func(r *runView) bool { return r.State == "killed" },
		},
		{
			name:    "loss",
			points:  []string{"settle.unlimit", "settle.ended", "settle.recorded"},
			prepare: runTarget,
			trigger: func(w *world) { w.kill(w.wrapper(w.target().ID)) },
			done:    func(r *runView) bool { return r.State == "failed" && r.ErrorCode == "E_RUNNER_DISAPPEARED" },
		},
	}
}

// daemonOperations are the operations that start and stop the daemon.
func daemonOperations() []operation {
	return []operation{
		{
			name:    "daemon start",
			points:  []string{"daemon.locked", "daemon.opened", "daemon.listening", "daemon.reconciled", "daemon.recorded"},
			prepare: func(w *world) { runTarget(w); w.must("daemon", "stop") },
			command: []string{"ls"},
			done:    isRunning,
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
			done:    isRunning,
		},
	}
}

func isRunning(r *runView) bool { return r.State == "running" }

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
			if w.process == nil {
				return nil
			}
			select {
			case <-w.ended:
				return nil // its pid may belong to another process by now
			default:
				return []int{w.process.Process.Pid}
			}
		}},
	}
}

// gitSteps returns the git processes that are killed, or whose daemon is, before, during and after
// their work. During it, they leave the lock of the ref that they write, and die with their daemon.
func gitSteps() []gitStep {
	all := []gitStep{}
	ops := map[string]*operation{}
	for _, op := range append(operations(), landingOperations()...) {
		ops[op.name] = &op
	}
	for _, s := range []struct {
		op    *operation
		args  string
		locks bool // a ref whose lock it leaves when it is killed
	}{
		{ops["run"], "checkout --quiet --no-recurse-submodules", true},
		{ops["run whose worktree git makes"], "update-ref --no-deref --create-reflog", true},
		{ops["run whose worktree git makes"], "worktree add", false},
		{ops["run from a standby"], "update-ref --no-deref --create-reflog", true},
		{ops["run from a standby"], "symbolic-ref -m", true},
		{ops["rm"], "update-ref", true},
		{ops["rm"], "worktree remove", false},
		{ops["rm"], "branch -D", true},
		{ops["snapshot"], "commit-tree", false},
		{ops["snapshot"], "update-ref", true},
		{ops["resume"], "update-ref", true},
		{ops["merge"], "update-ref --create-reflog", true},
		{ops["merge --undo"], "update-ref --create-reflog", true},
		{ops["merge into a checkout"], "merge --ff-only", true},
		{ops["merge --undo into a checkout"], "reset --keep", true},
		{ops["merge with checks"], "worktree add", false},
		{ops["merge with checks"], "checkout --quiet --force", false},
		{ops["merge with checks"], "clean --quiet", false},
		{ops["merge and remove"], "worktree remove", false},
		{ops["merge and remove"], "update-ref --no-deref -d", false},
	} {
		for _, when := range []string{"before", "after"} {
			all = append(all, gitStep{s.op, s.args, when})
		}
		if s.locks {
			all = append(all, gitStep{s.op, s.args, "within"})
		}
		if s.args == "merge --ff-only" || s.args == "reset --keep" || s.op == ops["run"] {
			all = append(all, gitStep{s.op, s.args, "midway"})
		}
	}
	return all
}

type gitStep struct {
	op         *operation
	args, when string
}

// shim is a git that reads the file gitkill once: as the file says, it dies, or kills its parent
// and works on. While there is a file gitdead, each git that runs the command in it dies.
const shim = `#!/bin/sh
if [ -f "$ROOT/gitdead" ]; then
	read -r what <"$ROOT/gitdead"
	case " $* " in *" $what "*) kill -9 $$ ;; esac
fi
armed=$ROOT/gitkill
set -C # a lock that another git holds is not written over
if [ -f "$armed" ]; then
	read -r who when what <"$armed"
	case " $* " in
	*" $what "*)
		if mv "$armed" "$armed.hit" 2>/dev/null; then
			victim=$$
			[ "$who" = git ] || victim=$PPID
			common=$ROOT/project/.git
			case $what in merge* | reset*)
				for commit; do :; done
				case $when in
				within) # all but the refs
					"$REAL_GIT" read-tree -m -u HEAD "$commit" || exit 128 # it moves files before it locks refs
					: >"$common/HEAD.lock"
					: >"$common/refs/heads/main.lock"
					kill -9 "$victim" $$
					;;
				midway) # one file, and a part of the next
					cp "$common/index" "$common/index.lock"
					for file in left.txt shared.txt; do
						rm -f "$ROOT/project/$file"
						"$REAL_GIT" show "$commit:$file" 2>/dev/null >|"$ROOT/part" || continue
						head -c 3 "$ROOT/part" >|"$ROOT/project/$file"
					done
					kill -9 "$victim" $$
					;;
				esac
				;;
			esac
			if [ "$when" = midway ]; then # some files, not all of the index, no branch
				: >"$GIT_DIR/index.lock"
				echo half >"$GIT_WORK_TREE/left.txt"
				kill -9 "$victim" $$
			fi
			if [ "$when" = within ]; then
				case $what in symbolic-ref*) # it locks HEAD alone
					: >"$GIT_DIR/HEAD.lock"
					kill -9 "$victim" $$
					;;
				esac
				for ref; do
					case $ref in
					agency/*) ref=refs/heads/$ref ;;
					refs/agency/* | refs/heads/*) ;;
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
func (w *client) setup(script string) {
	w.write("fail", "")
	path := filepath.Join(w.f.Repo, "agency.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[scripts]\nsetup = [\"sh\", \"-c\", '''%s''']\n", script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.must("trust")
}

// standby gives the repository a trusted setup that can be done ahead of runs, and leaves a process
// for so many seconds.
func (w *client) standby(seconds int) {
	path := filepath.Join(w.f.Repo, "agency.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[scripts]\nsetup = [\"sh\", \"-c\", 'sleep %d & echo $! >setup.txt']\nsetup_inputs = [\"src\"]\n", seconds), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.must("trust")
}

// awaitStandby has a run leave a standby.
func (w *client) awaitStandby() {
	w.must("run", "--name", "before", "--prompt", asks)
	w.await("a standby", func() bool {
		return strings.Contains(w.f.Agency("ls", "--standby").Stdout, " ready ")
	})
	w.must("stop", "before")
	w.must("rm", "before")
}

func (w *folder) script(name, text string) {
	if err := fixture.WriteProgram(w.path(name), text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *folder) write(name, text string) {
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *folder) path(name string) string { return filepath.Join(w.f.Root, name) }

func (w *folder) kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
