package crash_test

import (
	"os/exec"
	"strings"
)

// commitsWork is what an agent in a sandbox does; commitsMore is what its next attempt does.
const (
	commitsWork = "write work.txt precious\ncommit its work\nask ready?\n"
	commitsMore = "write more.txt precious\ncommit its work\nask ready?\n"
)

// confined are the operations on a run whose agent is in a sandbox, with a repository of its own.
func confined() []operation {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil
	}
	boxed := []string{"run", "--name", "target", "--sandbox", "process", "--prompt", commitsWork}
	use := func(w *world) {
		w.configure("[sandbox]\nenv = [\"ROOT\", \"REAL_GIT\"]\n")
		w.also = w.uncommitted
	}
	work := func(w *world) {
		w.must(boxed...)
		w.await("the agent's commit", func() bool { return w.hasWork(w.target()) && len(w.uncommitted()) == 0 })
	}
	return []operation{
		{
			name: "run in a sandbox",
			points: join([]string{"create.inserted", "create.files.made", "create.worktree.made"}, steps("create", "scaffold"), starting,
				[]string{"wrapper.waits", "create.session.made"}, steps("create", "started")),
			repo:    use,
			command: boxed,
			done:    isRunning,
		},
		{
			name:    "resume in a sandbox",
			points:  join([]string{"resume.begun"}, steps("resume", "files"), starting, []string{"resume.session.made"}, steps("resume", "started")),
			repo:    use,
			prepare: func(w *world) { work(w); w.must("stop", "target") },
			command: []string{"resume", "--fresh", "--prompt", commitsMore, "target"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 },
		},
		{
			name:    "stop in a sandbox",
			points:  []string{"stop.intended", "stop.delivered", "stop.ended", "stop.session"},
			repo:    use,
			prepare: work,
			command: []string{"stop", "target"},
			done:    func(r *runView) bool { return r.State == "killed" },
		},
	}
}

// uncommitted says so when the agent of the target works, and the user's repository does not have
// what it committed.
func (w *world) uncommitted() []string {
	target := w.target()
	if target == nil || target.State != "running" || target.RemovedAt != nil {
		return nil
	}
	w.must("show", "target") // brings it there
	said := w.f.Command("", "git", "log", "--format=%s", target.Branch).Stdout
	if commits := strings.Count(said, "its work\n"); commits != target.Attempt {
		return []string{"the repository has these commits of an agent in its attempt: " + said}
	}
	return nil
}
