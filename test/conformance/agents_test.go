package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/config"
	"agency/internal/harness"
	"agency/test/conformance/modelserver"
)

// agent is one of the real programs.
type agent struct {
	runner  string // as agency calls it
	program string
	setup
}

// setup is what tests have to know of an agent.
type setup struct {
	// home makes a home of its own for the agent, in which the repository is trusted and the model is the one at url,
	// and returns the environment that leads there.
	home func(t *testing.T, dir, repo, url string) []string
	// asks are the arguments of a run with which the agent asks before it runs a command.
	asks []string
	// noInput is set for a program that reads no task from its standard input: its model reads it.
	noInput bool
	// tools are the arguments of a run with which the agent has the tools of agency mcp; searchesTools is set for an agent that has
	// its model search for the tools of servers.
	tools         func(f *fixture) []string
	searchesTools bool
	answers       []answered
}

// answered is a request of an agent that agency answers.
type answered struct {
	name   string
	args   []string
	ask    modelserver.Turn
	answer string
	made   string // a file that the agent then made
	heard  string // in the next request; empty when nothing is
}

// setups are those of the agents that agency knows. The file of each agent adds its own.
var setups = map[agency.RunnerKind]setup{}

// agents are the programs that agency knows, as scripts/agents.sh installed them into a folder.
func agents(t *testing.T, dir string) []agent {
	t.Helper()
	var all []agent
	for _, a := range harness.Agents() {
		known, ok := setups[a.Kind]
		if !ok || len(known.answers) == 0 {
			t.Fatalf("%s has no setup with answers: its file in this folder adds one", a.Kind)
		}
		all = append(all, agent{runner: string(a.Kind), program: filepath.Join(dir, "node_modules", ".bin", a.Program), setup: known})
	}
	return all
}

// runners are the agents that agency knows.
func runners() []string {
	var names []string
	for _, a := range harness.Agents() {
		names = append(names, string(a.Kind))
	}
	return names
}

// table is where the configuration has the agent, below "runners".
func (a agent) table() string {
	if _, custom := config.ParseRunner(a.runner); custom != "" {
		return "custom." + custom
	}
	return a.runner
}

const key = "scripted-model-needs-no-key"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
