package config_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/config"
	"agency/internal/harness"
)

// problems are files that are refused, with the place and the words.
var problems = []struct {
	file string
	want string // after the path, with the hint in brackets
}{
	// Names.
	{"[runners.claude_cod]\nexec = \"x\"\n", `1:10: unknown key "runners.claude_cod" [did you mean "runners.claude_code"?]`},
	{"[Runners.codex]\n", `1:2: unknown key "Runners" [did you mean "runners"?]`},
	{"[stop]\nGrace = \"1s\"\n", `2:1: unknown key "stop.Grace" [did you mean "stop.grace"?]`},
	{"[stop]\nzzzzzz = 1\n", `2:1: unknown key "stop.zzzzzz" [known here: grace]`},
	{"stop.grcae = \"1s\"", `1:6: unknown key "stop.grcae" [did you mean "stop.grace"?]`},
	{"stop = { gracee = \"1s\" }", `1:10: unknown key "stop.gracee" [did you mean "stop.grace"?]`},
	{`"a b" = 1`, `1:1: unknown key "\"a b\"" [known here: defaults, ids, runners, tmux, logs, env, sandbox, resources, watchdog, landing, forge, queue, stop, session, db, disk, worktrees, mcp, notify, tui, presets]`},
	{"\"\\u001b\" = 1", `1:1: unknown key "\"\\u001B\"" [known here: defaults, ids, runners, tmux, logs, env, sandbox, resources, watchdog, landing, forge, queue, stop, session, db, disk, worktrees, mcp, notify, tui, presets]`},
	{"a" + strings.Repeat(".a", 5000) + " = 1", `1:1: unknown key "a" [known here: defaults, ids, runners, tmux, logs, env, sandbox, resources, watchdog, landing, forge, queue, stop, session, db, disk, worktrees, mcp, notify, tui, presets]`},
	// Types.
	{"[defaults]\nheadless = \"yes\"", `2:1: "defaults.headless" must be true or false, not the text "yes" []`},
	{"[defaults]\nheadless = 1", `2:1: "defaults.headless" must be true or false, not 1 []`},
	{"[defaults]\nbase = false", `2:1: "defaults.base" must be text, not false []`},
	{"[defaults.base]\nx = 1", `1:11: "defaults.base" must be text, not a table []`},
	{"defaults = 3", `1:1: "defaults" must be a table, not 3 []`},
	{"[[defaults]]", `1:3: "defaults" must be a table, not a list of tables []`},
	{"[logs]\nmax_bytes = 1e9", `2:1: "logs.max_bytes" must be a whole number, not 1e9 []`},
	{"[logs]\nmax_bytes = 1979-05-27", `2:1: "logs.max_bytes" must be a whole number, not a date or time []`},
	{"[env]\ndeny = \"AWS_*\"", `2:1: "env.deny" must be a list of texts, not text []`},
	{"[env]\ndeny = [\"A\", [\"B\"]]", `2:1: "env.deny" must be a list of texts, but item 2 is a list []`},
	{"[stop]\ngrace = 10", `2:1: "stop.grace" must be a duration in quotes, such as "90s" or "15m", not 10 []`},
	// Values.
	{"[stop]\ngrace = \"10\"", `2:1: "stop.grace" must be a duration such as "90s" or "15m", not "10" []`},
	{"[session]\nstatus_dir = \"../up\"", `2:1: "session.status_dir" must be a folder in the repository or an absolute path, not "../up" []`},
	{"[session]\nstatus_dir = \".git/status\"", `2:1: "session.status_dir" must be a folder in the repository or an absolute path, not ".git/status" []`},
	{"[session]\nstatus_dir = \".\"", `2:1: "session.status_dir" must be a folder in the repository or an absolute path, not "." []`},
	{"[stop]\ngrace = \"-1s\"", `2:1: "stop.grace" must be from 0s to 1h, not "-1s" []`},
	{"[watchdog]\nstall_threshold = \"1ms\"", `2:1: "watchdog.stall_threshold" must be from 1s to 168h, not "1ms" []`},
	{"[watchdog]\npoll_interval_secs = 0", `2:1: "watchdog.poll_interval_secs" must be from 1 to 3600, not 0 []`},
	{"[watchdog]\npoll_interval_secs = 9223372036854775807", `2:1: "watchdog.poll_interval_secs" must be from 1 to 3600, not 9223372036854775807 []`},
	{"[watchdog]\nerror_patterns = ['ok', 'quota (exceeded']", `2:1: "watchdog.error_patterns" is wrong at item 2: it must be a regular expression, and "quota (exceeded" is malformed: missing closing ) at "quota (exceeded" [the form is that of RE2; in single quotes TOML leaves backslashes alone: '(?i)error: quota']`},
	{"[watchdog]\nerror_patterns = ['(?=x)']", `2:1: "watchdog.error_patterns" is wrong at item 1: it must be a regular expression, and "(?=x)" is malformed: invalid or unsupported Perl syntax at "(?=" [the form is that of RE2; in single quotes TOML leaves backslashes alone: '(?i)error: quota']`},
	{"[watchdog]\nerror_patterns = ['x*']", `2:1: "watchdog.error_patterns" is wrong at item 1: it must not match everything, as "x*" does [a pattern needs a text, and matches from the beginning of a line]`},
	{"[presets.x.config]\nerror_patterns = ['']", `2:1: "presets.x.config.error_patterns" is wrong at item 1: it must not match everything, as "" does [a pattern needs a text, and matches from the beginning of a line]`},
	{"[watchdog]\nerror_patterns = ['" + strings.Repeat("x", 501) + "']", `2:1: "watchdog.error_patterns" is wrong at item 1: it must have at most 500 bytes, not 501 []`},
	{"[watchdog]\nerror_patterns = [" + strings.Repeat("'x', ", 33) + "]", `2:1: "watchdog.error_patterns" must have at most 32 patterns, not 33 [one pattern can hold several: "(quota|limit) exceeded"]`},
	{"[disk]\nmin_free = \"5 apples\"", `2:1: "disk.min_free" must be a size such as "512m" or "2g", not "5 apples" []`},
	{"[worktrees]\nstandby = 17", `2:1: "worktrees.standby" must be from 0 to 16, not 17 []`},
	{"[disk]\nmin_free = 5", `2:1: "disk.min_free" must be a size in quotes, such as "512m", not 5 []`},
	{"[logs]\nmax_bytes = 65535", `2:1: "logs.max_bytes" must be from 65536 to 1125899906842624, not 65535 []`},
	{"[logs]\nmax_bytes = 99999999999999999999", `2:1: "logs.max_bytes" must be from 65536 to 1125899906842624, not 99999999999999999999 []`},
	{"[logs]\nmax_bytes = 2020-13-41", `2:1: "logs.max_bytes" must be a whole number, not a date or time []`},
	{"[env]\ndeny = [\"OK\", \"[A\"]", `2:1: "env.deny" is wrong at item 2: it must be a pattern such as "AWS_*", and "[A" is malformed []`},
	{"[env]\ndeny = [\"A=B\"]", `2:1: "env.deny" is wrong at item 1: it must be a pattern for names of variables, not "A=B" []`},
	{"[tmux]\nsocket = \"a/b\"", `2:1: "tmux.socket" must be the name of a server or an absolute path, not "a/b" []`},
	{"[tmux]\nsocket = \"/" + strings.Repeat("x", 200) + "\"", fmt.Sprintf(`2:1: "tmux.socket" must have at most %d bytes, not 201 []`, len(syscall.RawSockaddrUnix{}.Path)-1)},
	{"[defaults]\nbase = \"--upload-pack=x\"", `2:1: "defaults.base" must be a branch, a tag or a commit, not "--upload-pack=x" []`},
	{"[defaults]\nrunner = \"codx\"", `2:1: "defaults.runner" is "codx", which is not a runner [did you mean "codex"?]`},
	{"[defaults]\nrunner = \"custom\"", `2:1: "defaults.runner" is "custom", which is not a runner [known here: ` + kinds() + `]`},
	{"[ids]\nformat = \"{slug}\"", `2:1: "ids.format" is not a format: "{slug}" has no {hash}, so two runs could want the same handle []`},
	{"[ids]\nformat = \"{\\u001b}\"", "2:1: \"ids.format\" is not a format: unknown placeholder {\uFFFD}; known are {MMDD} {YYYYMMDD} {HHMMSS} {slug} {hash} {type} []"},
	{"[runners.codex]\nexec = \"\"", `2:1: "runners.codex.exec" must not be empty []`},
	{"[runners.codex]\nexec = \"./codex\"", `2:1: "runners.codex.exec" must be the name of a program or an absolute path, not "./codex" []`},
	{"[runners.codex]\nexec = \"codex --x\"", `2:1: "runners.codex.exec" must be one program, not "codex --x": arguments belong into default_args []`},
	{"[runners.codex]\nexec = \"a\\u0000\"", `2:1: "runners.codex.exec" must not hold a NUL byte []`},
	// Custom runners.
	{"[runners.custom.x]", `1:17: "runners.custom.x" has no exec [add the program: exec = "x"]`},
	{"[runners.custom.x]\nexec = \"x\"\nprotocol = \"mcp\"", `3:1: "runners.custom.x.protocol" must be "acp", the Agent Client Protocol, not "mcp" []`},
	{"[runners.custom]\nx.default_args = []", `2:1: "runners.custom.x" has no exec [add the program: exec = "x"]`},
	{"[runners.custom.codex]\nexec = \"x\"", `1:17: the runner name "codex" is that of a kind [choose another name]`},
	{"[runners.custom.Bad]\nexec = \"x\"", `1:17: the runner name "Bad" is not allowed [a runner name has 1 to 40 characters: lower-case letters, digits, dots, dashes and underscores]`},
	{"[runners.custom]\nexec = \"x\"", `2:1: "runners.custom.exec" must be a table, not text []`},
	{"[runners.custom.x]\nexec = \"x\"\ndefault_args = [\"{promt_file}\"]", `3:1: "runners.custom.x.default_args" is wrong at item 1: it holds the unknown placeholder {promt_file} [did you mean {prompt_file}?]`},
	{"[runners.custom.x]\nexec = \"x\"\ndefault_args = [\"{HOME}\"]", `3:1: "runners.custom.x.default_args" is wrong at item 1: it holds the unknown placeholder {HOME} [the placeholders are {prompt_file}, {worktree}, {run_id}]`},
	// Twice.
	{"[stop]\ngrace = \"1s\"\n\ngrace = \"2s\"", `4:1: the key "stop.grace" is there twice, first on line 2 [keep one of the two]`},
	{"[stop]\n[stop]", `2:2: the table "stop" is there twice, first on line 1 [keep one of the two]`},
}

// kinds lists the kinds of runners as a hint does.
func kinds() string {
	kinds := []string{}
	for _, kind := range harness.Kinds() {
		kinds = append(kinds, string(kind))
	}
	return strings.Join(kinds, ", ")
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range problems {
		_, path, err := load(t, tt.file)
		e := agency.AsError(err)
		if err == nil {
			t.Errorf("%q is taken", tt.file)
			continue
		}
		if got, want := e.Message+" ["+e.Hint+"]", path+":"+tt.want; got != want || e.Code != agency.CodeConfigInvalid {
			t.Errorf("%q\n got %s\nwant %s", tt.file, got, want)
		}
		if n := len(e.Details["problems"].([]string)); n != 1 {
			t.Errorf("%q: %d problems: %q", tt.file, n, e.Details["problems"])
		}
	}
}

// Text that is not TOML is reported in the library's words, but never with the names of Go.
func TestSyntaxProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, at string }{
		{"x", "1:1"},
		{"[stop\n", "1:6"},
		{"[stop]\ngrace = \"1s", "2:11"},
		{"a = 1 b = 2", "1:7"},
		{"\x00", "1:1"},
		{"[a]\n[a]\nb = 99999999999999999999", "1:2"},
		{"[logs]\nmax_bytes = 007", "2:13"},
		{"[env]\ndeny = [\"\xff\"]", "2:10"},
		{"stop.grace = \"1s\"\n[stop]\n", "2:2"},
		{"\ufeff[stop]\n", "1:1"},
	} {
		_, path, err := load(t, tt.file)
		if err == nil {
			t.Errorf("%q is taken", tt.file)
			continue
		}
		if !strings.HasPrefix(err.Error(), path+":"+tt.at+": ") {
			t.Errorf("%q: %v, want it at %s", tt.file, err, tt.at)
		}
		if regexp.MustCompile(`\b(struct|map\[|interface|int64|\[\]string|toml:|config\.)`).MatchString(strings.TrimPrefix(err.Error(), path)) {
			t.Errorf("%q: the words of Go in %q", tt.file, err)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, path, err := load(t, `[defaults]
runer = "codex"
headless = 1
[runners.codx]
exec = "x"
default_args = []
[stop]
grace = "soon"
grace = "1s"
[env]
deny = [
`, "AGENCY_LOG=loud", "AGENCY_WATCHDOG_POLL_INTERVAL=often")
	want := []string{
		path + `:2:1: unknown key "defaults.runer" (did you mean "defaults.runner"?)`,
		path + `:3:1: "defaults.headless" must be true or false, not 1`,
		path + `:4:10: unknown key "runners.codx" (did you mean "runners.codex"?)`,
		path + `:8:1: "stop.grace" must be a duration such as "90s" or "15m", not "soon"`,
		path + `:9:1: the key "stop.grace" is there twice, first on line 8 (keep one of the two)`,
		path + `:11:9: array is incomplete`,
		`AGENCY_LOG must be debug, info, warn or error, not "loud"`,
		`AGENCY_WATCHDOG_POLL_INTERVAL must be a whole number, not the text "often"`,
	}
	e := agency.AsError(err)
	if diff := cmp.Diff(want, e.Details["problems"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(want[0], e.Message) || e.Hint != `did you mean "defaults.runner"?` {
		t.Errorf("message %q, hint %q", e.Message, e.Hint)
	}
}

func TestEnvironmentProblems(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"AGENCY_LOG=wran":                   `AGENCY_LOG must be debug, info, warn or error, not "wran"`,
		"AGENCY_WATCHDOG_POLL_INTERVAL=0":   `AGENCY_WATCHDOG_POLL_INTERVAL must be from 1 to 3600, not 0`,
		"AGENCY_WATCHDOG_POLL_INTERVAL=30s": `AGENCY_WATCHDOG_POLL_INTERVAL must be a whole number, not the text "30s"`,
	} {
		if _, _, err := load(t, "", env); !agency.IsCode(err, agency.CodeConfigInvalid) || err.Error() != want {
			t.Errorf("%s: %v", env, err)
		}
	}
}

// Any bytes end in a configuration that reads back, or in an error that names its place or at least
// the file.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		config.SampleFile(), "", "[runners.custom.x]\nexec = 'y'", "a.b.c = [[1], {x=1}]", "[[stop]]", "stop = {grace = \"1s\", grace = 2}",
		"\"\\u0000\" = 1", "[stop]\r\ngrace = \"1s\"\r\n", "[runners]\ncustom.\"a.b\".exec = \"q\"", "[env]\ndeny = [\"[\"]", "\ufeff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, path, err := load(t, string(data))
		if err != nil {
			e := agency.AsError(err)
			problems, _ := e.Details["problems"].([]string)
			if e.Code != agency.CodeConfigInvalid || len(problems) == 0 {
				t.Fatalf("%q: %#v", data, e)
			}
			for _, p := range append(problems, e.Message) {
				if !strings.HasPrefix(p, path+":") || strings.ContainsFunc(p, unicode.IsControl) {
					t.Errorf("%q: %q has no place, or control characters", data, p)
				}
			}
			return
		}
		for _, o := range c.Origins() {
			if o.Key == "" || o.Value == "" || o.From == "" || strings.ContainsFunc(o.Value, unicode.IsControl) {
				t.Errorf("%q: %+v", data, o)
			}
		}
		if c.Path != path || filepath.Base(path) != "config.toml" || c.Watchdog.PollInterval <= 0 || c.Logs.MaxBytes <= 0 {
			t.Errorf("%q: %+v", data, c)
		}
	})
}
