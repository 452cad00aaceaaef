package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/test/conformance/modelserver"
	"agency/test/paste"
)

// Each agent works in the sandbox process: it reaches its model through agency's proxy alone,
// writes a file and reports, and its commit is on the branch.
func TestSandboxed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed: make deps")
	}
	for _, name := range runners() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, name)
			f := newProxied(t, binary, &a, greeting())
			spec := filepath.Join(f.dir, "spec.json")
			write(t, spec, fmt.Sprintf(`{"prompt": {}, "runner": {"kind": %q, "dangerously_skip_permissions": true}}`, name))
			run := f.start(a, append([]string{"--spec", spec, "--headless", "--sandbox", "process", "--network", "allow"}, throughProxy...)...)
			ended, exit := f.wait(run)
			if exit != 0 || ended.Status != agency.ReadyForReview || ended.Summary != "greeted" { // its own report
				t.Fatalf("exit %d, %s %s", exit, ended.Status, ended.Summary)
			}
			f.output(binary, "diff", string(run.ID)) // a look at the run takes its commits over
			if got := f.output("git", "show", run.Branch+":greeting.txt"); got != "hello\n" {
				t.Errorf("the branch has %q", got)
			}
			f.until("its end", func() bool { return len(f.processes(run.ID)) == 0 })
		})
	}
}

// newProxied is newFixture for an agent that reaches its model through agency's proxy alone: the name of
// the model is not one that a machine resolves.
func newProxied(t *testing.T, binary string, a *agent, scenario modelserver.Scenario) *fixture {
	named := func(url string) string { return strings.Replace(url, "127.0.0.1", "model.localhost", 1) }
	home := a.home
	a.home = func(t *testing.T, dir, repo, url string) []string { return home(t, dir, repo, named(url)) }
	f := newFixture(t, binary, *a, scenario)
	f.addConfig("[sandbox]\nhosts = [\"" + named(strings.TrimPrefix(f.model.URL, "http://")) + "\"]\nenv = [\"SCRIPTED_KEY\"]\n")
	return f
}

// throughProxy are the flags with which an agent uses the proxy for names of this machine too.
var throughProxy = []string{"--env", "NO_PROXY=127.0.0.1", "--env", "no_proxy=127.0.0.1"}

// greeting is a turn in which an agent writes a file, commits it and reports.
func greeting() modelserver.Scenario {
	return modelserver.Scenario{
		{Text: "I write.", Write: &modelserver.File{Path: "greeting.txt", Content: "hello\n"}},
		{Text: "I report.", Shell: "git add greeting.txt && git -c user.name=a -c user.email=a@b commit -qm greeting && agency report complete --summary greeted"},
		{Text: "All done."},
	}
}

// Each agent works in the sandbox landlock too, with links to its state in a home of its own.
func TestFenced(t *testing.T) {
	t.Parallel()
	for _, name := range runners() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, name)
			f := newFixture(t, binary, a, greeting())
			f.addConfig("[sandbox]\nenv = [\"SCRIPTED_KEY\"]\n")
			spec := filepath.Join(f.dir, "spec.json")
			write(t, spec, fmt.Sprintf(`{"prompt": {}, "runner": {"kind": %q, "dangerously_skip_permissions": true}}`, name))
			run := f.start(a, "--spec", spec, "--headless", "--sandbox", "landlock")
			ended, exit := f.wait(run)
			if exit != 0 || ended.Status != agency.ReadyForReview || ended.Summary != "greeted" {
				t.Fatalf("exit %d, %s %s", exit, ended.Status, ended.Summary)
			}
			if got := f.output("git", "show", run.Branch+":greeting.txt"); got != "hello\n" {
				t.Errorf("the branch has %q", got)
			}
			f.until("its end", func() bool { return len(f.processes(run.ID)) == 0 })
		})
	}
}

// A newcomer pastes the blocks of docs/sandbox-tour.md one after the other: Claude Code tries to get
// out of a sandbox, and the page says what it could do.
func TestSandboxTour(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed: make deps")
	}
	binary, _ := installed(t, "claude_code")
	page := paste.Page{Path: "../../docs/sandbox-tour.md", Dir: "/tmp/agency-sandbox", Skip: []string{"make build", "agency doctor"}, Bin: filepath.Dir(binary)}
	page.Check(t, func(dir string) {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(filepath.Join(os.Getenv("AGENCY_AGENTS"), "node_modules"), filepath.Join(dir, "node_modules"))); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "model"), "./scripted").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
}
