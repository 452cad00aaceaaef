package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/config"
	"agency/internal/scaffold"
)

func TestParseProject(t *testing.T) {
	t.Parallel()
	change := func(f func(p *agency.Project)) agency.Project {
		p := agency.DefaultProject()
		f(&p)
		return p
	}
	for text, want := range map[string]agency.Project{
		"":                                      agency.DefaultProject(),
		"[project]\ntype = \"go\"":              change(func(p *agency.Project) { p.Type = "go" }),
		"project.parallel = false":              change(func(p *agency.Project) { p.Parallel = false }),
		"project = {agent_runs = true}":         change(func(p *agency.Project) { p.Window = true }),
		"[defaults]\nrunner = \"aider\"":        change(func(p *agency.Project) { p.Runner = "aider" }),
		"[scripts]\nsetup = \"setup.sh\"":       change(func(p *agency.Project) { p.Setup = []string{"./setup.sh"} }),
		"[scripts]\nsetup = \"./a/b.sh\"":       change(func(p *agency.Project) { p.Setup = []string{"./a/b.sh"} }),
		"[scripts]\nsetup = [\"make\", \"-s\"]": change(func(p *agency.Project) { p.Setup = []string{"make", "-s"} }),
		"[scripts]\ntimeout = \"90s\"":          change(func(p *agency.Project) { p.SetupTimeout = 90 * time.Second }),
		"[worktree]\ncopy = [\".env\"]\nlink = [\"node_modules\", \"a/b\"]": change(func(p *agency.Project) {
			p.Copy, p.Link = []string{".env"}, []string{"node_modules", "a/b"}
		}),
		"[[check]]\nname = \"lint\"\nrun = \"ci/lint.sh\"\n[[check]]\nname = \"test\"\nrun = [\"make\", \"test\"]\ntimeout = \"5m\"\nretries = 1\nfiles = [\"Makefile\", \"**/*.mk\"]": change(func(p *agency.Project) {
			p.Checks = []agency.Check{
				{Name: "lint", Run: []string{"./ci/lint.sh"}, Timeout: 20 * time.Minute},
				{Name: "test", Run: []string{"make", "test"}, Timeout: 5 * time.Minute, Retries: 1, Files: []string{"Makefile", "**/*.mk"}},
			}
		}),
		"[ids]\nformat = \"{hash}-x\"\n[defaults]\nbase = \"main\"\n[project]\nlayout = \"standard\"": change(func(p *agency.Project) {
			p.HandleFormat, p.Base, p.Layout = "{hash}-x", "main", "standard"
		}),
	} {
		got, err := config.ParseProject("/r/agency.toml", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if p, err := config.ParseProject("x", scaffold.ProjectTemplate()); err != nil || p.Type != "other" || p.NeedsTrust() {
		t.Errorf("the template: got %+v, %v", p, err)
	}
}

func TestProjectProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want, hint string }{
		{"[project]\nparalel = false", `/r/agency.toml:2:1: unknown key "project.paralel"`, `did you mean "project.parallel"?`},
		{"[script]\nsetup = \"x\"", `/r/agency.toml:1:2: unknown key "script"`, `did you mean "scripts"?`},
		{"[sandbox]\nimage = \"-v /:/x\"", `"sandbox.image" must be the name of an image, not "-v /:/x"`, ""},
		{"[project]\nsandbox = \"jail\"", `must be one of worktree, landlock, process, container, not "jail"`, ""},
		{"[project]\nparallel = \"no\"", `2:1: "project.parallel" must be true or false, not the text "no"`, ""},
		{"[project]\ntype = \"Go lang\"", `must be one word, not "Go lang"`, "a type has 1 to 40"},
		{"[scripts]\nsetup = \"make deps; rm -rf /\"\nsetup = \"x\"", `3:1: the key "scripts.setup" is there twice, first on line 2`, ""},
		{"[scripts]\nsetup = \"/bin/sh\"", `must be a path in the repository, not "/bin/sh"`, `a program and its arguments are a list: setup = ["make", "deps"]`},
		{"[scripts]\nsetup = \"../x\"", `must be a path in the repository`, ""},
		{"[scripts]\nsetup = []", "must name a program", ""},
		{"[scripts]\nsetup = [\"make deps\"]", "must begin with one program", ""},
		{"[scripts]\nsetup = [\"../x\"]", "is wrong at item 1: it must be a path in the repository", ""},
		{"[scripts]\nsetup = [\"a\", 3]", "must be a list of texts, but item 2 is 3", ""},
		{"[scripts]\nsetup = 3", "must be a file of the repository, or a list of a program and its arguments, not 3", ""},
		{"[scripts]\ntimeout = \"0s\"", "must be from 1s to 24h", ""},
		{"[worktree]\ncopy = [\".git/config\"]", "is wrong at item 1: it must not lie in .git", ""},
		{"[worktree]\ncopy = [\".GIT/config\"]", "must not lie in .GIT", ""},
		{"[worktree]\nlink = [\".agency/x\"]", "must not lie in .agency", ""},
		{"[worktree]\nlink = [\"a\\nb\"]", "must not hold control characters", ""},
		{"[worktree]\nlink = [\".\"]", "must be a path in the repository", ""},
		{"[defaults]\nbase = \"-x\"", "must be a branch, a tag or a commit", ""},
		{"[ids]\nformat = \"{slug}\"", "has no {hash}", ""},
		{"[[check]]\nrun = [\"make\"]", `1:3: "check" needs a name`, `name = "test"`},
		{"[[check]]\nname = \"test\"", `"check" needs a program`, `run = ["make", "test"]`},
		{"[[check]]\nname = \"Te st\"\nrun = [\"x\"]", `2:1: "check.name" must be one word, not "Te st"`, ""},
		{"[[check]]\nname = \"a\"\nrun = [\"x\"]\n[[check]]\nname = \"a\"\nrun = [\"y\"]", `has the name "a" twice`, "each check needs a name of its own"},
		{"[[check]]\nname = \"a\"\nrunn = [\"x\"]", `3:1: unknown key "check.runn"`, `did you mean "check.run"?`},
		{"[[check]]\nname = \"a\"\nrun = \"../x\"", `"check.run" must be a path in the repository`, `run = ["make", "deps"]`},
		{"[[check]]\nname = \"a\"\nrun = [\"x\"]\nretries = 11", `"check.retries" must be from 0 to 10`, ""},
		{"[[check]]\nname = \"a\"\nrun = [\"x\"]\nfiles = [\"/etc/*\"]", `"check.files" is wrong at item 1`, ""},
		{"[check]\nname = \"a\"", `"check" must be a list of tables, not a table`, "begin each check with a line [[check]]"},
		{"check = [1]", `"check" must be a list of tables, but holds 1`, ""},
		{"[project", "/r/agency.toml:1", ""},
	} {
		_, err := config.ParseProject("/r/agency.toml", []byte(test.text))
		e := agency.AsError(err)
		if e == nil || e.Code != agency.CodeConfigInvalid {
			t.Errorf("%q: got %v", test.text, err)
			continue
		}
		problems, _ := e.Details["problems"].([]string)
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, test.want) }) || !strings.Contains(strings.Join(problems, "\n"), test.hint) {
			t.Errorf("%q: got %q, want %q and %q", test.text, problems, test.want, test.hint)
		}
	}
}

func TestEditProject(t *testing.T) {
	t.Parallel()
	runner := func(v string) []config.Setting { return []config.Setting{{Key: "defaults.runner", Value: v}} }
	for name, test := range map[string]struct {
		text     string
		settings []config.Setting
		want     string
		changes  []string
	}{
		"new table":       {"# hello\n", runner("codex"), "# hello\n\n[defaults]\nrunner = \"codex\"\n", []string{`defaults.runner = "codex"`}},
		"empty":           {"", runner("codex"), "[defaults]\nrunner = \"codex\"\n", []string{`defaults.runner = "codex"`}},
		"no line end":     {"[defaults]", runner("codex"), "[defaults]\nrunner = \"codex\"\n", []string{`defaults.runner = "codex"`}},
		"in its table":    {"[defaults] # d\nbase = 'x'\n[ids]\n", runner("codex"), "[defaults] # d\nrunner = \"codex\"\nbase = 'x'\n[ids]\n", []string{`defaults.runner = "codex"`}},
		"replaced":        {"[defaults]\n  runner = 'gemini'  # why\n", runner("codex"), "[defaults]\n  runner = \"codex\"  # why\n", []string{`defaults.runner = "codex" (was 'gemini')`}},
		"said already":    {"[defaults]\nrunner = 'codex'\n", runner("codex"), "[defaults]\nrunner = 'codex'\n", nil},
		"dotted":          {"defaults.runner = \"x\"", runner("codex"), "defaults.runner = \"codex\"", []string{`defaults.runner = "codex" (was "x")`}},
		"inline":          {"defaults = {runner = \"x\", base = \"b\"}\n", runner("codex"), "defaults = {runner = \"codex\", base = \"b\"}\n", []string{`defaults.runner = "codex" (was "x")`}},
		"quoted":          {"['defaults']\n\"runner\" = \"x\"\n", runner("codex"), "['defaults']\n\"runner\" = \"codex\"\n", []string{`defaults.runner = "codex" (was "x")`}},
		"list":            {"[scripts]\nsetup = [\n  \"]\", # ]\n] # now\n", []config.Setting{{Key: "scripts.setup", Value: "a.sh"}}, "[scripts]\nsetup = \"a.sh\" # now\n", []string{"scripts.setup = \"a.sh\" (was [\n  \"]\", # ]\n])"}},
		"carriage return": {"[defaults]\r\nbase = \"x\"\r\n", runner("codex"), "[defaults]\r\nrunner = \"codex\"\r\nbase = \"x\"\r\n", []string{`defaults.runner = "codex"`}},
		"several": {
			"[project]\nparallel = true\n",
			[]config.Setting{{Key: "project.parallel", Value: false}, {Key: "project.type", Value: "go"}, {Key: "ids.format", Value: "{hash}"}},
			"[project]\ntype = \"go\"\nparallel = false\n\n[ids]\nformat = \"{hash}\"\n",
			[]string{"project.parallel = false (was true)", `project.type = "go"`, `ids.format = "{hash}"`},
		},
	} {
		got, changes, err := config.EditProject("agency.toml", []byte(test.text), test.settings)
		if err != nil || string(got) != test.want || !slices.Equal(changes, test.changes) {
			t.Errorf("%s: got %q, %q, %v", name, got, changes, err)
		}
	}
	// A setup can be removed again, with its lines and nothing else.
	for text, want := range map[string]struct{ text, was string }{
		"[scripts] # s\n# why\nsetup = 'a.sh' # now\ntimeout = \"2m\"\n":           {"[scripts] # s\n# why\ntimeout = \"2m\"\n", `"./a.sh"`},
		"scripts.setup = \"a.sh\"":                                                 {"", `"./a.sh"`},
		"[scripts]\r\nsetup = [\r\n \"make\", # x\r\n \"deps\",\r\n]\r\n[ids]\r\n": {"[scripts]\r\n[ids]\r\n", `"make deps"`},
		"scripts = {setup = \"a.sh\"}\n[ids]\n":                                    {"[ids]\n", `"./a.sh"`},
		"[scripts]\ntimeout = \"2m\"\n":                                            {"[scripts]\ntimeout = \"2m\"\n", ""},
		"":                                                                         {"", ""},
	} {
		got, changes, err := config.EditProject("agency.toml", []byte(text), []config.Setting{{Key: config.SetupKey}})
		var wanted []string
		if want.was != "" {
			wanted = []string{"scripts.setup is removed (was " + want.was + ")"}
		}
		if err != nil || string(got) != want.text || !slices.Equal(changes, wanted) {
			t.Errorf("%q without setup: got %q, %q, %v", text, got, changes, err)
		}
	}
	_, _, err := config.EditProject("agency.toml", []byte("scripts = {setup = \"a.sh\", timeout = \"2m\"}\n"), []config.Setting{{Key: config.SetupKey}})
	if e := agency.AsError(err); e == nil || e.Code != agency.CodeConfigInvalid || !strings.Contains(e.Hint, "yourself, under [scripts]") {
		t.Errorf("beside another key: got %v", err)
	}
	// A form that agency cannot edit is left to the user, with an error.
	_, _, err = config.EditProject("agency.toml", []byte("scripts = {}\n"), []config.Setting{{Key: "scripts.setup", Value: "a.sh"}})
	if e := agency.AsError(err); e == nil || e.Code != agency.CodeConfigInvalid || !strings.Contains(e.Hint, "yourself, under [scripts]") {
		t.Errorf("an empty inline table: got %v", err)
	}
}

func TestCheckSetting(t *testing.T) {
	t.Parallel()
	for _, s := range []config.Setting{{Key: "project.type", Value: "go"}, {Key: "project.parallel", Value: true}, {Key: "scripts.setup", Value: "a/b.sh"}} {
		if err := config.CheckSetting(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
	e := agency.AsError(config.CheckSetting(config.Setting{Key: "project.sandbox", Value: "jail"}))
	if e == nil || e.Code != agency.CodeUsage || e.Message != `project.sandbox must be one of worktree, landlock, process, container, not "jail"` {
		t.Errorf("got %+v", e)
	}
}

// For any agency.toml: no panic, every problem is a safe line, and an edit does what it reports or
// is refused.
func FuzzProject(f *testing.F) {
	f.Add([]byte("[project]\nparallel = false\n"), "codex")
	f.Add([]byte("[defaults]\r\nrunner = 'x' # c\r\n"), "a\"b\\")
	f.Add([]byte("defaults = {runner = \"x\"}"), "")
	f.Add([]byte("[scripts]\nsetup = [\"a\",\n 'b']\n[worktree]\ncopy=[]"), "x")
	f.Add([]byte("\ufeff[[project]]\ntype.a = 1979-05-27"), "x")
	f.Fuzz(func(t *testing.T, data []byte, runner string) {
		p, err := config.ParseProject("agency.toml", data)
		if err != nil {
			if e := agency.AsError(err); e.Code != agency.CodeConfigInvalid || strings.ContainsAny(e.Message, "\n\x1b\x00") {
				t.Errorf("got %q", e.Message)
			}
			return
		}
		set := config.Setting{Key: "defaults.runner", Value: runner}
		if config.CheckSetting(set) != nil {
			return
		}
		edited, changes, err := config.EditProject("agency.toml", data, []config.Setting{set})
		if err != nil {
			return
		}
		if (len(changes) == 0) != (string(edited) == string(data)) {
			t.Errorf("changes %q of %q to %q", changes, data, edited)
		}
		got, err := config.ParseProject("agency.toml", edited)
		if p.Runner = runner; err != nil || !cmp.Equal(p, got) {
			t.Errorf("%q became %q: %v\n%s", data, edited, err, cmp.Diff(p, got))
		}
	})
}
