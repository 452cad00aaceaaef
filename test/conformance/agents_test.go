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
	runner  string // its name in agency
	program string
	setup
}

// setup holds what the tests must know of an agent.
type setup struct {
	// home makes a home of its own for the agent, in which the repository is trusted and the model
	// is the one at url. It returns the environment for that home.
	home func(t *testing.T, dir, repo, url string) []string
	// asks are the arguments of a run whose agent asks before it runs a command.
	asks []string
	// links is set for an agent that gets a link to a picture in the mode protocol, not the picture.
	links bool
	// speaks are those of a run in the mode protocol whose agent asks the user.
	speaks []string
	// todos are turns in which the agent makes a list of its work by its own tools: the first of two
	// steps is done, and the other under way. todoArgs are the arguments of a run that has the tools.
	// todosDone completes the other, where that names a step of the list.
	todos     []modelserver.Turn
	todoArgs  []string
	todosDone []modelserver.Turn
	// model and permissions are what the agent can be told to use, in the mode protocol; other is how
	// it names the former then. Empty is what it cannot.
	model, other, permissions string
	// noInput is set for a program that reads no task from its standard input: its model reads it.
	noInput bool
	// tools returns the arguments of a run whose agent has the tools of agency mcp; searchesTools
	// is set for an agent whose model must search for the tools of servers.
	tools         func(f *fixture) []string
	searchesTools bool
	// joins is what the agent's own terminal shows while it asks for touch, and the key that allows it;
	// empty for an agent whose terminal cannot join.
	joins   struct{ shows, allow string }
	answers []answered
}

// longWords is an answer in own words that does not fit on one line of a terminal.
const longWords = "a warm green,  as the leaves have in the first days of May, but darker where it is behind text, so that white letters " +
	"stay easy to read on it, and never as pale as the present one"

// answered is a request of an agent that agency answers.
type answered struct {
	name   string
	args   []string
	ask    modelserver.Turn
	answer string
	made   string // a file that the agent then made
	heard  string // a text of the next request; empty for none
}

// The steps of a list of work.
const firstStep, secondStep = "Read the code", "Fix the test"

// setups are those of the agents in the registry. The file of each agent adds its own.
var setups = map[agency.RunnerKind]setup{}

// shell returns how the agent's own protocol names the tool that runs commands.
func (a agent) shell() string {
	if harness.Dialect(agency.RunnerKind(a.runner), "").OneAtATime {
		return "shell"
	}
	return "Bash"
}

// agents returns the agents of the registry, as scripts/agents.sh installed them into a folder.
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

// runners returns the names of the agents.
func runners() []string {
	var names []string
	for _, a := range harness.Agents() {
		names = append(names, string(a.Kind))
	}
	return names
}

// table returns the configuration table of the agent, below "runners".
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
