package cli_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
	"agency/internal/config"
)

// exitCase is a command, what the daemon answers, and the exit status.
type exitCase struct {
	args []string
	data any
	code agency.Code // of the daemon
	want int
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	waited := func(labels ...agency.Label) any {
		resp := api.WaitRunsResponse{Runs: []api.Run{}}
		for _, l := range labels {
			resp.Runs = append(resp.Runs, clitest.SomeRun("fix-login", l, ""))
		}
		return resp
	}
	for name, test := range map[string]exitCase{
		"all is well":       {[]string{"show", "x"}, api.ShowRunResponse{Run: clitest.SomeRun("x", agency.Working, "")}, "", agency.ExitOK},
		"help":              {[]string{"--help"}, nil, "", agency.ExitOK},
		"nothing":           {nil, nil, "", agency.ExitOK},
		"no such run":       {[]string{"show", "x"}, nil, agency.CodeRunNotFound, agency.ExitNotFound},
		"ambiguous":         {[]string{"show", "x"}, nil, agency.CodeRunAmbiguous, agency.ExitUsage},
		"no session":        {[]string{"attach", "x"}, nil, agency.CodeTmuxSessionNotFound, agency.ExitNotFound},
		"wrong state":       {[]string{"stop", "x"}, nil, agency.CodeInvalidState, agency.ExitConflict},
		"refused input":     {[]string{"send", "x", "hello"}, nil, agency.CodeInputRefused, agency.ExitConflict},
		"other daemon":      {[]string{"ls"}, nil, agency.CodeDaemonVersion, agency.ExitConflict},
		"defect":            {[]string{"ls"}, nil, agency.CodeInternal, agency.ExitError},
		"code of tomorrow":  {[]string{"ls"}, nil, "E_TOMORROW", agency.ExitError},
		"spec":              {[]string{"run", "--prompt", "x"}, nil, agency.CodeSpecInvalid, agency.ExitUsage},
		"no prompt":         {[]string{"run"}, nil, "", agency.ExitUsage},
		"unknown flag":      {[]string{"ls", "--colour"}, nil, "", agency.ExitUsage},
		"unknown command":   {[]string{"lst2x"}, nil, "", agency.ExitUsage},
		"unknown below":     {[]string{"daemon", "reboot"}, nil, "", agency.ExitUsage},
		"too few":           {[]string{"show"}, nil, "", agency.ExitUsage},
		"too many":          {[]string{"show", "a", "b"}, nil, "", agency.ExitUsage},
		"no number":         {[]string{"logs", "x", "--attempt", "one"}, nil, "", agency.ExitUsage},
		"no file":           {[]string{"run", "--prompt-file", "nowhere"}, nil, "", agency.ExitError},
		"settled":           {[]string{"wait", "x"}, waited(agency.LabelCompleted, agency.ReadyForReview), "", agency.ExitOK},
		"one failed":        {[]string{"wait", "x", "y"}, waited(agency.LabelFailed, agency.LabelCompleted), "", agency.ExitError},
		"one was stopped":   {[]string{"wait", "x", "y"}, waited(agency.LabelKilled), "", agency.ExitError},
		"one asks":          {[]string{"wait", "x", "y"}, waited(agency.LabelFailed, agency.NeedsInput), "", agency.ExitNeedsUser},
		"as asked for":      {[]string{"wait", "x", "--for", "failed"}, waited(agency.LabelFailed), "", agency.ExitOK},
		"time is up":        {[]string{"wait", "x", "--timeout", "1s"}, api.WaitRunsResponse{Runs: []api.Run{}, TimedOut: true}, "", agency.ExitTimeout},
		"negative timeout":  {[]string{"wait", "x", "--timeout", "-1s"}, nil, "", agency.ExitUsage},
		"sound":             {[]string{"doctor"}, api.DoctorResponse{Checks: []api.Check{{Level: "warning"}}}, "", agency.ExitOK},
		"not sound":         {[]string{"doctor"}, api.DoctorResponse{Checks: []api.Check{{Level: "error"}, {Level: "ok"}}}, "", agency.ExitError},
		"wrapper's own":     {[]string{"wrapper", "x"}, nil, "", agency.ExitUsage},
		"attach, no screen": {[]string{"attach", "x"}, api.AttachRunResponse{RunID: "r_01JD4QJ5T0Y7R8V6W3N2M1K0HG", Socket: clitest.OwnSocket(t)}, "", agency.ExitUsage},
	} {
		for _, json := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", JSON"}[json], func(t *testing.T) {
				t.Parallel()
				exits(t, name, json, test)
			})
		}
	}
}

// exits runs a command, and checks its status and that what it prints is safe.
func exits(t *testing.T, name string, json bool, test exitCase) {
	t.Helper()
	b := clitest.New(t)
	b.App.Env = append(b.App.Env, "PATH="+os.Getenv("PATH"))
	var err error
	if test.code != "" {
		err = agency.Errorf(test.code, "bo\x1b[31mom\u202e").WithHint("a way \x07out")
	}
	b.Serve(clitest.Always(test.data, err))
	args, want := test.args, test.want
	if json {
		args = append(slices.Clone(args), "--json")
	}
	if json && name == "attach, no screen" {
		want = agency.ExitOK // the command is printed
	}
	if got := b.Run(args...); got != want {
		t.Fatalf("got %d, want %d; out %q, err %q", got, want, b.Out.String(), b.Err.String())
	}
	switch {
	case name == "help" || name == "nothing":
	case json:
		e := b.Envelope()
		if test.code != "" && e.Error.Code != test.code {
			t.Errorf("got %+v", e.Error)
		}
	case b.Err.Len() > 0:
		clitest.CheckSafe(t, b.Err.String(), "\n\t")
		if test.code != "" && (!strings.Contains(b.Err.String(), "["+string(test.code)+"]") || !strings.Contains(b.Err.String(), "agency: hint: a way out\n")) {
			t.Errorf("got %q", b.Err.String())
		}
	}
	if b.Spawned != 0 {
		t.Error("a daemon was started although one runs")
	}
}

// A wrong value of a flag is reported in the words that the user typed.
func TestWrongFlagValue(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`--max-minutes must be a whole number, not "ten" [E_USAGE]`:                            {"run", "--prompt", "x", "--max-minutes", "ten"},
		`--interval must be a whole number, not "30s" [E_USAGE]`:                               {"watchdog", "start", "--run", "x", "--interval", "30s"},
		`--parallel must be true or false, not "maybe" [E_USAGE]`:                              {"init", "--parallel=maybe"},
		`--for must be a duration such as 90s, 30m, 2h or 7d, not "a day" [E_USAGE]`:           {"alerts", "snooze", "--for", "a day", "a_1"},
		`--max-minutes must be a whole number, not "99999999999999999999" [E_USAGE]`:           {"run", "--max-minutes", "99999999999999999999"},
		"unknown flag: --colour [E_USAGE]":                                                     {"ls", "--colour"},
		`--quiet-for must be a duration such as 90s, 30m, 2h or 7d, not "a\x1b[31m" [E_USAGE]`: {"report", "working", "--quiet-for", "a\x1b[31m"},
	} {
		b := clitest.New(t)
		if got := b.Run(args...); got != agency.ExitUsage || !strings.Contains(b.Err.String(), "agency: error: "+want+"\n") {
			t.Errorf("%q: got %d and %q, want %q", args, got, b.Err.String(), want)
		}
	}
}

// A command starts a missing daemon, once; a command that only looks at the daemon starts none.
func TestNoDaemon(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args    []string
		want    int
		spawned int
	}{
		{[]string{"ls"}, agency.ExitUnknown, 1},
		{[]string{"events", "-f"}, agency.ExitUnknown, 1},
		{[]string{"logs", "x"}, agency.ExitUnknown, 1},
		{[]string{"daemon", "start"}, agency.ExitUnknown, 1},
		{[]string{"daemon", "status"}, agency.ExitNotFound, 0},
		{[]string{"daemon", "stop"}, agency.ExitOK, 0},
		{[]string{"version"}, agency.ExitOK, 0},
		{[]string{"config", "show"}, agency.ExitOK, 0},
	} {
		b := clitest.New(t)
		if got := b.Run(append(test.args, "--json")...); got != test.want || b.Spawned != test.spawned {
			t.Errorf("%q: got %d and %d daemons, want %d and %d", test.args, got, b.Spawned, test.want, test.spawned)
		}
		e := b.Envelope()
		if e.OK == (e.Error != nil) {
			t.Errorf("%q: got %+v", test.args, e)
		}
	}
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.Serve(func(string, []byte) (any, error) { cancel(); <-ctx.Done(); return nil, clitest.ErrBoom })
	if got := b.App.Main(ctx, []string{"ls"}); got != 130 || b.Err.Len() != 0 {
		t.Errorf("got %d and %q", got, b.Err.String())
	}
}

func TestUnknownCommandHints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		hint string
	}{
		{[]string{"shwo", "x"}, "did you mean: agency show"},
		{[]string{"LS"}, "did you mean: agency ls"},
		{[]string{"atach", "x"}, "did you mean: agency attach"},
		{[]string{"daemon", "statsu"}, "did you mean: agency daemon status"},
		{[]string{"config", "shwo"}, "did you mean: agency config show"},
		{[]string{"statsu"}, "did you mean: agency status"}, // another name of a command
		{[]string{"lsit"}, "did you mean: agency list"},
		{[]string{"kil", "x"}, "agency --help"}, // would end something
		{[]string{"attach"}, "agency ls"},
		{[]string{"session", "wait"}, "agency session ls"},
		{[]string{"send"}, "agency ls"},
		{[]string{"photosynthesis"}, "agency --help"},
		{[]string{"daemon", "photosynthesis"}, "agency daemon --help"},
		{[]string{"wrappr", "x"}, "agency --help"}, // the command is not for users
		{[]string{"ls", "--stauts", "x"}, "did you mean --status"},
		{[]string{"report", "working", "--questions", "x"}, "did you mean --question"},
		{[]string{"ls", "--photosynthesis"}, "agency ls --help"},
	} {
		b := clitest.New(t)
		if got := b.Run(append(test.args, "--json")...); got != agency.ExitUsage {
			t.Errorf("%q: got %d", test.args, got)
		}
		if e := b.Envelope(); e.Error == nil || e.Error.Hint != test.hint {
			t.Errorf("%q: got %+v, want the hint %q", test.args, e.Error, test.hint)
		}
	}
}

// own returns the commands that are agency's own and for users, without those that cobra adds.
func own(root *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			list = append(list, own(c)...)
		}
	}
	return list
}

// examples returns the command lines of agency in a help text, split as a shell does, without the
// leading "agency".
func examples(t *testing.T, text string) [][]string {
	t.Helper()
	var found [][]string
	for line := range strings.Lines(text) {
		words := shellWords(strings.TrimSpace(line))
		for len(words) > 0 {
			end := slices.IndexFunc(words, func(w string) bool { return w == "|" || w == "&&" || w == ";" || w == ">" })
			command, rest := words, []string(nil)
			if end >= 0 {
				command, rest = words[:end], words[end+1:]
			}
			if len(command) > 0 && command[0] == "agency" {
				found = append(found, command[1:])
			}
			words = rest
		}
	}
	return found
}

func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && r == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, c := range own(clitest.New(t).App.Root()) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Parallel()
			if c.Short == "" || c.Example == "" || strings.HasSuffix(c.Short, ".") {
				t.Errorf("short %q, example %q", c.Short, c.Example)
			}
			for line := range strings.Lines(c.Short + "\n" + c.Long) {
				if len(line) > 140 {
					t.Errorf("a line has %d characters: %s", len(line), line)
				}
			}
			b := clitest.New(t)
			b.Run(append(strings.Fields(c.CommandPath())[1:], "--help")...)
			for line := range strings.Lines(b.Out.String()) {
				if ansi.StringWidth(line) > 80 {
					t.Errorf("a line of the help is wider than 80 columns: %s", line)
				}
			}
			_, see, _ := strings.Cut(b.Out.String(), "\nSee also:\n")
			for named := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(see, "\n  ", " ")), ", ") {
				if found, _, err := b.App.Root().Find(strings.Fields(named)[1:]); err != nil || found.CommandPath() != named {
					t.Errorf("see also names %q", named)
				}
			}
			exampleWorks(t, c)
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Usage == "" {
					t.Errorf("--%s says nothing", f.Name)
				}
			})
		})
	}
}

// exampleWorks checks that the example of a command can be parsed, and shows the command.
func exampleWorks(t *testing.T, c *cobra.Command) {
	t.Helper()
	for line := range strings.Lines(c.Example) {
		if !strings.HasPrefix(line, "  ") {
			t.Errorf("the example %q is not indented", line)
		}
	}
	lines := examples(t, c.Example)
	if len(lines) == 0 {
		t.Errorf("no example calls agency: %q", c.Example)
	}
	shows := false
	for _, args := range lines {
		b := clitest.New(t)
		found, rest, err := b.App.Root().Find(args)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		shows = shows || found.CommandPath() == c.CommandPath() || strings.HasPrefix(found.CommandPath(), c.CommandPath()+" ")
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if err := found.ValidateArgs(found.Flags().Args()); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if !shows {
		t.Errorf("no example shows the command itself: %q", c.Example)
	}
}

// Every command that fails with --json prints one envelope and nothing else: on a wrong flag, on
// too many arguments, on an error of the daemon, and without a daemon.
func TestOneEnvelopePerFailure(t *testing.T) {
	t.Parallel()
	for _, c := range own(clitest.New(t).App.Root()) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Parallel()
			path := strings.Fields(c.CommandPath())[1:]
			for _, args := range [][]string{
				append(slices.Clone(path), "--json", "--no-such-flag"),
				append(slices.Clone(path), "--no-such-flag", "--json"),
				append(slices.Clone(path), "--json", "a", "b", "c", "d", "--no-such-flag"),
			} {
				b := clitest.New(t)
				if got := b.Run(args...); got != agency.ExitUsage {
					t.Errorf("%q: got %d", args, got)
				}
				if e := b.Envelope(); e.Error == nil || e.Error.Code != agency.CodeUsage || b.Err.Len() != 0 {
					t.Errorf("%q: got %+v and %q", args, e.Error, b.Err.String())
				}
			}
			for _, args := range examples(t, c.Example) {
				args = append([]string{"--json"}, args...)
				for _, running := range []bool{true, false} {
					b := clitest.New(t)
					if running {
						b.Serve(clitest.Always(nil, agency.Errorf(agency.CodeDBError, "boom")))
					}
					status := b.Run(args...)
					if e := b.Envelope(); e.OK != (status == agency.ExitOK || status == agency.ExitNotFound) {
						t.Errorf("%q: got %d and %+v", args, status, e)
					}
				}
			}
		})
	}
}

// Completion offers the names that a running daemon returns; it starts no daemon.
func TestCompletion(t *testing.T) {
	t.Parallel()
	long := "working " + strings.Repeat("long ", 6) + "l…" // 40 columns
	runs := api.ListRunsResponse{Runs: []api.Run{
		clitest.SomeRun("fix-login", agency.NeedsInput, "Which\none?\x1b[31m\t:4"), clitest.SomeRun("", agency.Working, strings.Repeat("long ", 40)),
	}}
	runs.Runs[0].Flag = &agency.Flag{Reason: "look"}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"unflag", ""}, "fix-login\tneeds input Which one? :4\n:4\n"},
		{[]string{"show", ""}, "fix-login\tneeds input Which one? :4\n1122-fix-login-a1b2\t" + long + "\n:4\n"},
		{[]string{"show", "one", ""}, ":4\n"},
		{[]string{"wait", "one", "fix-"}, "fix-login\tneeds input Which one? :4\n1122-fix-login-a1b2\t" + long + "\n:4\n"},
	} {
		b := clitest.New(t)
		d := b.Serve(clitest.Always(runs, nil))
		if got := b.Run(append([]string{"__complete"}, test.args...)...); got != agency.ExitOK {
			t.Errorf("%q: got %d", test.args, got)
		}
		if b.Out.String() != test.want {
			t.Errorf("%q: got %q, want %q", test.args, b.Out.String(), test.want)
		}
		if slices.ContainsFunc(d.Asked, func(op string) bool { return op != "run.list" && op != "session.list" }) {
			t.Errorf("asked %q", d.Asked)
		}
	}
	for _, c := range own(clitest.New(t).App.Root()) {
		if !strings.Contains(c.Use, "RUN") || c.Name() == "run" {
			continue
		}
		b := clitest.New(t)
		args := append(append([]string{"__complete"}, strings.Fields(c.CommandPath())[1:]...), "")
		if got := b.Run(args...); got != agency.ExitOK || !strings.HasSuffix(b.Out.String(), ":4\n") || b.Spawned != 0 {
			t.Errorf("%q without a daemon: got %d, %q and %d daemons", args, got, b.Out.String(), b.Spawned)
		}
		b.Serve(func(op string, _ []byte) (any, error) {
			if op == api.ListQueue.Name {
				return api.QueueResponse{Entries: []api.QueueItem{{Entry: agency.QueueEntry{Run: "fix-login"}}}}, nil
			}
			return runs, nil
		})
		if b.Run(args...); !strings.Contains(b.Out.String(), "fix-login\t") {
			t.Errorf("%q offers no runs: %q", args, b.Out.String())
		}
	}
}

func TestCompletionOfFlags(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	b.Run("__complete", "ls", "--status", "")
	for i, l := range agency.Labels() {
		word := agency.LabelWords()[i]
		if !strings.Contains(b.Out.String(), word+"\n") {
			t.Errorf("%s is not offered", word)
		}
		if parsed, err := agency.ParseLabel(word); err != nil || parsed != l {
			t.Errorf("%s: got %v, %v", word, parsed, err)
		}
	}
	b.Run("__complete", "run", "--runner", "")
	for _, kind := range config.RunnerKinds() {
		if offered := strings.Contains(b.Out.String(), string(kind)+"\n"); offered != (kind != agency.Custom) {
			t.Errorf("%s offered: %v", kind, offered)
		}
	}
	if b.Spawned != 0 {
		t.Error("a daemon was started")
	}
}
