package menu_test

import (
	"testing"

	"agency"
)

// A run is started from a task of several lines; what is said of it can be changed before, and after
// the daemon refused it.
func TestMenuNewRun(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.refuse = agency.Errorf(agency.CodeNotGitRepo, "no repository")
	u.types("n 1 fix_it __q q . 3 fixer 5 codex 1 r 1")
	u.hears("the task, on as many lines as you like", "1. start it\n2. repository, a folder in it: /home/me/web\n3. name: from the task", "name, an empty line: from the task\nname: fixer\n1 to start it",
		"starting\nerror: no repository\n1 to start it", "3. name: fixer\n", "fixer started", "1. auth-fix")
	u.did(`create "fix it\n  q\nq" in /home/me/web as "fixer" by codex`, `create "fix it\n  q\nq" in /home/me/web as "fixer" by codex`)
	u.types("n 1 . n b n 1 fix . b q")
	u.did()
}

// A plan is checked, told and then started, and its session is shown.
func TestMenuPlan(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("n 2 bad.yaml 1 b q")
	u.hears("error: it cannot start: its setup is not trusted\nagency init\n1 to check it")
	u.did()
	u.types("n 2 plan.yaml 1 n 3 july 1 y b q")
	u.hears("plan release, 2 agents, at most 2 at once, on failure stop\nwave 1: schema by codex\nwave 2: api, after schema\nwarning: no effect\nstart 2 agents? y/n\nnothing was done",
		"name: july", "start 2 agents? y/n\nstarting\nrelease started\nrelease, running: 1 queued, 1 done\n1. api, queued", "number of a run")
	u.did("start /home/me/web/plan.yaml as july in /home/me/web")
}
