package crash_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

// quickPlan is a session of three agents that end by themselves.
const quickPlan = `
base: deps
defaults: {headless: true}
agents:
  - {id: one, prompt: "write one.txt precious\ncommit one"}
  - {id: two, prompt: "say two\nwrite two.txt precious"}
  - {id: three, after: [one, two], prompt: "say three\nexit %d"}
`

// mixed lists the commands that clients draw from, by weight. NAME is the name of a run. MESSAGE is
// a commit message of its own: two agents that commit the same in the same second make the same
// commit, and deleting the branch of one does not lose what is on the branch of the other.
var mixed = []struct {
	weight int
	args   []string
}{
	{7, []string{"run", "--name", "NAME", "--prompt", asks}},
	{3, []string{"run", "--name", "NAME", "--headless", "--prompt", "write work.txt precious\nchild"}},
	{3, []string{"run", "--name", "NAME", "--prompt", "write work.txt precious\ncommit MESSAGE\nask ready?"}},
	{1, []string{"run", "--name", "NAME", "--runner", "broken", "--prompt", asks}},
	{1, []string{"run", "--name", "NAME", "--headless", "--prompt", "spam 20000\nexit 3"}},
	{1, []string{"run", "--name", "NAME", "--preset", "worker", "--prompt", asks}},
	{4, []string{"stop", "NAME"}},
	{3, []string{"resume", "NAME"}},
	{2, []string{"resume", "--fresh", "--restart", "NAME"}},
	{1, []string{"resume", "--all-lost"}},
	{4, []string{"rm", "NAME"}},
	{2, []string{"rm", "--delete-branch", "NAME"}},
	{3, []string{"ls", "--all", "--json"}},
	{1, []string{"show", "NAME"}},
	{1, []string{"explain", "NAME"}},
	{1, []string{"logs", "NAME"}},
	{1, []string{"logs", "-f", "NAME"}},
	{1, []string{"events", "--json"}},
	{1, []string{"events", "-f"}},
	{2, []string{"attach", "NAME"}},
	{1, []string{"diff", "NAME"}},
	{2, []string{"send", "NAME", "go on"}},
	{1, []string{"answer", "NAME", "yes"}},
	{2, []string{"wait", "NAME", "--timeout", "2s"}},
	{2, []string{"snapshot", "NAME"}},
	{1, []string{"snapshot", "ls", "NAME"}},
	{1, []string{"snapshot", "show", "NAME"}},
	{2, []string{"snapshot", "restore", "NAME"}},
	{1, []string{"gc", "--older-than", "1s", "--apply"}},
	{1, []string{"alerts"}},
	{1, []string{"messages", "send", "--to", "NAME", "--text", "hello"}},
	{1, []string{"messages", "poll"}},
	{1, []string{"flag", "NAME", "look"}},
	{1, []string{"unflag", "NAME"}},
	{1, []string{"messages", "ls"}},
	{1, []string{"tags", "add", "NAME", "worker"}},
	{1, []string{"tags", "ls", "NAME"}},
	{1, []string{"report", "working", "--summary", "at it"}},
	{1, []string{"report", "needs_input", "--summary", "two ways", "--question", "which?"}},
	{1, []string{"report", "ready_for_review", "--summary", "done", "--how-to-test", "look"}},
	{1, []string{"watchdog", "start", "--run", "NAME", "--interval", "30", "--message", "check"}},
	{1, []string{"watchdog", "stop"}},
	{1, []string{"watchdog", "status"}},
	{1, []string{"watchdog", "explain", "NAME"}},
	{2, []string{"session", "start", "PLAN"}},
	{1, []string{"session", "start", "PLAN", "--wait", "--timeout", "3s"}},
	{1, []string{"session", "create", "--agent", "001", "--agent", "002"}},
	{1, []string{"session", "update", "latest", "--agent", "001", "start"}},
	{1, []string{"session", "update", "latest", "--agent", "001", "complete"}},
	{1, []string{"session", "update", "latest", "--max-parallel", "2"}},
	{1, []string{"session", "pause", "latest"}},
	{2, []string{"session", "resume", "latest"}},
	{1, []string{"session", "watch", "latest"}},
	{1, []string{"session", "wait", "latest", "--timeout", "2s"}},
	{1, []string{"session", "logs", "latest"}},
	{1, []string{"session", "ls"}},
	{1, []string{"session", "show", "latest"}},
	{1, []string{"session", "cancel", "latest"}},
	{1, []string{"session", "retry", "latest"}},
	{1, []string{"session", "rm", "latest"}},
	{1, []string{"init", "--repo", "FRESH", "--agent-runs", "--force"}},
	{1, []string{"init", "--repo", "FRESH", "--layout", "standard", "--force"}},
	{3, []string{"trust"}},
	{1, []string{"trust", "--show"}},
	{1, []string{"trust", "--revoke"}},
	{1, []string{"config", "show"}},
	{1, []string{"config", "check"}},
	{1, []string{"presets", "ls"}},
	{1, []string{"presets", "show", "worker"}},
	{1, []string{"notify", "ls"}},
	{1, []string{"notify", "test"}},
	{1, []string{"doctor"}},
	{1, []string{"db", "check"}},
	{1, []string{"db", "backup", "BACKUP"}},
	{1, []string{"db", "rebuild"}},
	{1, []string{"daemon", "stop"}},
	{1, []string{"daemon", "status"}},
	{1, []string{"mcp"}},
}

// faults lists what can happen to a world, by weight.
var faults = []struct {
	weight int
	what   string
}{
	{6, "kill daemon"},
	{5, "kill wrapper"},
	{4, "kill runner"},
	{2, "kill tmux"},
	{4, "kill client"},
	{5, "kill git"},
	{1, "stop daemon"},
	{1, "stop wrapper"},
	{1, "stop runner"},
	{1, "stop tmux"},
	{1, "stop client"},
	{1, "stop git"},
	{1, "delete agencyd.lock"},
	{1, "delete agencyd.sock"},
	{1, "delete agency.db"}, // and not the daemon, if one lives
	{1, "lose agency.db"},   // together with the daemon
	{1, "fill disk"},
	{1, "limit files"},
}

// step is one fault, with its delay from the beginning of the round.
type step struct {
	at    time.Duration
	what  string
	which int           // among the possible processes, or how many files the daemon may still open
	lasts time.Duration // for faults that end
}

// mix is everything that happens in a round.
type mix struct {
	clients [][][]string // the commands of each, in order
	steps   []step
}

// draw draws a round: 1 to 8 clients of two to four commands, and two to nine faults beside them.
// It depends only on the source, so a seed determines a mix.
func draw(r *rand.Rand, root string) mix {
	var m mix
	commands, hits := 0, 0
	for _, c := range mixed {
		commands += c.weight
	}
	for _, f := range faults {
		hits += f.weight
	}
	for range 1 + r.IntN(8) {
		client := [][]string{}
		for range 2 + r.IntN(3) {
			n, i := r.IntN(commands), 0
			for ; n >= mixed[i].weight; i++ {
				n -= mixed[i].weight
			}
			client = append(client, spell(r, mixed[i].args, root))
		}
		m.clients = append(m.clients, client)
	}
	at := time.Duration(0)
	for range 2 + r.IntN(8) {
		n, i := r.IntN(hits), 0
		for ; n >= faults[i].weight; i++ {
			n -= faults[i].weight
		}
		at += time.Duration(r.IntN(150)) * time.Millisecond
		m.steps = append(m.steps, step{at, faults[i].what, r.IntN(8), time.Duration(50+r.IntN(1000)) * time.Millisecond})
	}
	return m
}

// spell replaces the placeholders in a command. Files are in root.
func spell(r *rand.Rand, args []string, root string) []string {
	spelt := []string{}
	for _, arg := range args {
		switch arg {
		case "NAME":
			arg = fmt.Sprintf("n%d", 1+r.IntN(4))
		case "PLAN":
			arg = fmt.Sprintf("%s/plan%d.yaml", root, r.IntN(2))
		case "FRESH":
			arg = filepath.Join(root, "fresh")
		case "BACKUP":
			arg = fmt.Sprintf("%s/backup.%d", root, r.Uint32())
		}
		arg = strings.Replace(arg, "MESSAGE", fmt.Sprintf("work %d", r.Uint32()), 1)
		spelt = append(spelt, arg)
	}
	return spelt
}
