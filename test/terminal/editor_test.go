package terminal_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// inEditor runs agency run without a task on a terminal. The user's editor is a script, which gets
// the path of the text as its argument.
func inEditor(t *testing.T, f *fixture.Fixture, script string) *client {
	t.Helper()
	path := filepath.Join(f.Root, "the editor")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Env = append(f.Env, "VISUAL=", "EDITOR=sh '"+path+"'") // an editor can have arguments
	return agencyIn(t, f, 80, 24, "run", "--runner", "shell", "--name", "login")
}

// Without a task, a terminal opens the editor for it.
func TestRunInTheEditor(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	inEditor(t, f, `test -t 0 && test -t 1 && test -t 2 && printf 'echo from the editor\nexit 3\n' > "$1"`).ends(0)
	r := ended(t, f, decode[api.ShowRunResponse](t, f, "show", "login").Run)
	if r.ExitCode == nil || *r.ExitCode != 3 {
		t.Errorf("the run is %s %s, want exit 3", r.State, r.Summary)
	}
	prompt, err := os.ReadFile(filepath.Join(r.RunDir, "prompt.md"))
	if want := "echo from the editor\nexit 3\n"; err != nil || string(prompt) != want {
		t.Errorf("the prompt is %q, %v, want %q", prompt, err, want)
	}
}

// An editor that leaves nothing, or fails, starts nothing.
func TestRunWithoutATaskInTheEditor(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	for script, says := range map[string]string{
		`:`:                     "the editor left no task, so nothing is started",
		`echo ' ' > "$1"`:       "the editor left no task, so nothing is started",
		`echo x > "$1"; exit 1`: "the editor \"sh '" + filepath.Join(f.Root, "the editor") + "'\" failed: ",
	} {
		c := inEditor(t, f, script)
		c.shows(says)
		c.shows(`hint: agency run "fix the login test"`)
		c.ends(agency.CodeUsage.Exit())
	}
	if runs := decode[api.ListRunsResponse](t, f, "ls", "--all").Runs; len(runs) > 0 {
		t.Errorf("%s is there", runs[0].Handle)
	}
}
