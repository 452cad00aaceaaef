package tmux_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/tmux"
	"agency/test/fixture"
)

// nasty has every setting of a user that would harm a session of agency's, or change what it runs.
const nasty = `
set -g destroy-unattached on
set -g remain-on-exit off
set -g default-command "echo default-command ran"
set -g default-shell /bin/false
set -g base-index 5
set -g pane-base-index 7
set -g renumber-windows on
set -g update-environment "HOME PATH TERM"
set -g detach-on-destroy on
set -g default-size 20x5
set-hook -g after-new-session "display-message -p noise"
set -g no-such-option 1
`

func TestStartSurvivesUserSettings(t *testing.T) {
	t.Parallel()
	s := newServer(t, nasty)
	ctx := context.Background()

	// tmux can lose a program that ends in its first moment; a wrapper never does that.
	end := filepath.Join(t.TempDir(), "end")
	wait := "until [ -e '" + end + "' ]; do sleep 0.01; done; "
	pane := s.start(t, "agency_r_1", "/bin/sh", "-c", "echo from the runner; "+wait+"exit 3")
	shown := func() bool {
		screen := s.ask(t, "capture-pane", "-p", "-t", pane, "-S", "-1") // tmux 3.2's note about the dead pane pushes one row off the screen
		return strings.HasPrefix(screen, "from the runner\n")
	}
	eventually(t, "the program writes", shown)
	if ok, err := s.Runs(ctx, "agency_r_1"); err != nil || !ok {
		t.Errorf("before the program's end: Runs = %v, %v", ok, err)
	}
	write(t, end, "")
	// tmux does not always get the exit status; agency never asks for it.
	eventually(t, "the program has ended", func() bool {
		return s.ask(t, "display-message", "-p", "-t", pane, "#{pane_dead}") == "1"
	})
	// Another client that comes and goes makes tmux look for unattached sessions.
	s.ask(t, "list-sessions")
	if ok, err := s.Exists(ctx, "agency_r_1"); err != nil || !ok {
		t.Errorf("after the program's end: Exists = %v, %v", ok, err)
	}
	for _, name := range []string{"agency_r_1", "agency_r_10", "agency_r", "=agency_r_1"} {
		if ok, err := s.Runs(ctx, name); err != nil || ok {
			t.Errorf("after the program's end: Runs(%q) = %v, %v", name, ok, err)
		}
	}
	if !shown() {
		t.Error("the last screen is gone")
	}
	if got := s.ask(t, "display-message", "-p", "-t", pane, "#{window_width}x#{window_height}"); got != "80x24" {
		t.Errorf("size = %s, want 80x24", got)
	}

	// A single argument must not go through the shell either, which is /bin/false here.
	script, ran := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "ran")
	if err := fixture.WriteProgram(script, "#!/bin/sh\necho yes >'"+ran+"'\n"); err != nil {
		t.Fatal(err)
	}
	s.start(t, "agency_r_2", script)
	eventually(t, "the script runs", func() bool {
		data, err := os.ReadFile(ran)
		return err == nil && string(data) == "yes\n"
	})

	for option, want := range map[string]string{"destroy-unattached": "on", "remain-on-exit": "off"} {
		if got := s.ask(t, "show-options", "-gv", option); got != want {
			t.Errorf("the user's %s is %s, it was %s", option, got, want)
		}
	}
}

func TestStartPassesArgumentsIntact(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	args := []string{
		"", ";", ";;", `\;`, `a;`, `a\;`, `a\\;`, `\`, "a b", "$HOME", "`date`", "#{pid}", "#(date)", "##", "~", "%1", "-t",
		"--", "{", "}", "'", `"`, "new\nline", "tab\t", "ünï¢öde🙂", "=x:", "x=y", "*", strings.Repeat("long", 2000),
	}
	write(t, filepath.Join(s.home, "print"), `for a; do printf '<%s>\n' "$a"; done > "$OUT.tmp"; echo end >> "$OUT.tmp"; mv "$OUT.tmp" "$OUT"`)
	out := filepath.Join(s.home, "out")
	s.Env = append(s.Env, "OUT="+out) // this Start starts the server, which keeps its Env
	s.start(t, "agency_r_1", append([]string{"/bin/sh", filepath.Join(s.home, "print")}, args...)...)

	want := "<" + strings.Join(args, ">\n<") + ">\n"
	if got := contents(t, out); got != want {
		t.Errorf("the program got\n%q, want\n%q", got, want)
	}
}

func TestStartRunsOneArgumentWithoutAShell(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	for i, name := range []string{"plain", "with space", "$(touch x)", "a;", "x=y", "#{pid}"} {
		out := filepath.Join(s.home, "out"+string(rune('a'+i)))
		program := filepath.Join(s.home, name)
		if err := fixture.WriteProgram(program, "#!/bin/sh\nprintf '%s\\nend\\n' \"$#\" > "+out+".tmp; mv "+out+".tmp "+out+"\n"); err != nil {
			t.Fatal(err)
		}
		s.start(t, "agency_r_"+string(rune('a'+i)), program)
		if got := contents(t, out); got != "0\n" {
			t.Errorf("%q ran with %s arguments", name, got)
		}
	}
}

func TestStartTakesAnyDirectory(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	bait := filepath.Join(s.home, "executed")
	names := []string{
		"plain", "with space", "#{pid}", "#(touch $BAIT)", "#[fg=red]", "##[x", "##", "#", "a#", "%Y%m%d", ";", "a;", `a\;`,
		"$HOME", "-x", "#{?1,a,b}", "ünï", "new\nline",
	}
	s.Env = append(s.Env, "BAIT="+bait)
	for i, name := range names {
		dir := filepath.Join(s.home, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		session := "agency_r_" + string(rune('a'+i))
		out := filepath.Join(s.home, "out-"+session)
		_, err := s.Start(context.Background(), tmux.Session{
			Name: session, Dir: dir, Width: 80, Height: 24,
			Argv: []string{"/bin/sh", "-c", `printf '%s\nend\n' "$PWD" > "$0.tmp"; mv "$0.tmp" "$0"`, out},
		})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := strings.TrimSuffix(contents(t, out), "\n"); got != dir {
			t.Errorf("%q: the program is in %q", name, got)
		}
		// This is where windows open that the user adds.
		if got := s.ask(t, "display-message", "-p", "-t", "="+session+":", "#{session_path}"); got != dir && !strings.ContainsAny(dir, "\n\\") {
			t.Errorf("%q: the session is in %q", name, got)
		}
	}
	if _, err := os.Stat(bait); err == nil {
		t.Error("a directory's name was executed")
	}
}

func TestStartEnvironment(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.Env = append(s.Env, "SERVER=mine")
	s.start(t, "agency_r_1", "/bin/cat")
	env := "\n" + s.ask(t, "show-environment", "-g") + "\n"
	if !strings.Contains(env, "\nSERVER=mine\n") {
		t.Error("Env did not reach the server")
	}
	for _, name := range []string{"TMUX=", "TMUX_PANE=", "LC_ALL="} {
		if strings.Contains(env, "\n"+name) {
			t.Errorf("the server has %s", name)
		}
	}
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	ctx := context.Background()
	s.start(t, "agency_r_1", "/bin/cat")
	good := tmux.Session{Name: "agency_r_2", Dir: s.home, Argv: []string{"/bin/cat", "-"}, Width: 80, Height: 24}
	for name, tt := range map[string]struct {
		change func(*tmux.Session)
		want   string
	}{
		"taken":        {func(s *tmux.Session) { s.Name = "agency_r_1" }, "start tmux session agency_r_1: duplicate session: agency_r_1"},
		"dotted name":  {func(s *tmux.Session) { s.Name = "a.b" }, "other characters"},
		"empty name":   {func(s *tmux.Session) { s.Name = "" }, "other characters"},
		"no directory": {func(s *tmux.Session) { s.Dir = filepath.Join(s.Dir, "missing") }, "no such file or directory"},
		"relative":     {func(s *tmux.Session) { s.Dir = "." }, "not an absolute path"},
		"no program":   {func(s *tmux.Session) { s.Argv = nil }, "no program"},
		"no size":      {func(s *tmux.Session) { s.Width = 0 }, "width"},
		"too long":     {func(s *tmux.Session) { s.Argv = []string{"/bin/echo", strings.Repeat("x", 20_000)} }, "too long"},
	} {
		session := good
		tt.change(&session)
		_, err := s.Start(ctx, session)
		if !agency.IsCode(err, agency.CodeTmuxStartFailed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	// A clash of names must not affect the older session.
	if got, err := s.Sessions(ctx); err != nil || len(got) != 1 || got[0] != "agency_r_1" {
		t.Errorf("Sessions = %v, %v", got, err)
	}
}

func TestStartCostsOneProcess(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.start(t, "keep", "/bin/cat")

	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	counting := "#!/bin/sh\necho call >> '" + log + "'\nexec '" + s.path + "' \"$@\"\n"
	if err := fixture.WriteProgram(filepath.Join(bin, "tmux"), counting); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	s.start(t, "agency_r_1", "/bin/cat")
	if calls, err := os.ReadFile(log); err != nil || string(calls) != "call\n" {
		t.Errorf("Start ran tmux as often as %q says (%v), want once", calls, err)
	}
}

// The end of the last session ends the server, and the next start may meet the ending server.
func TestStartAfterTheLastKill(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	for range 20 {
		s.start(t, "agency_r_1", "/bin/cat", "-")
		if err := s.Kill(context.Background(), "agency_r_1"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSilentTmuxTimesOut(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := fixture.WriteProgram(filepath.Join(bin, "tmux"), "#!/bin/sh\nexec sleep 60\n"); err != nil {
		t.Fatal(err)
	}
	silent := tmux.New("", 200*time.Millisecond)
	silent.Env = []string{"PATH=" + bin + ":/bin:/usr/bin"}
	_, err := silent.Sessions(context.Background())
	if !agency.IsCode(err, agency.CodeTmuxFailed) || !strings.Contains(err.Error(), "no answer within 200ms") {
		t.Errorf("error = %v", err)
	}
}

func BenchmarkStart(b *testing.B) {
	s := newServer(b, "")
	if _, err := s.Start(context.Background(), tmux.Session{Name: "keep", Dir: s.home, Argv: []string{"/bin/cat", "-"}, Width: 80, Height: 24}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, err := s.Start(context.Background(), tmux.Session{
			Name: "agency_r_1", Dir: s.home, Argv: []string{"/bin/cat", "-"}, Width: 80, Height: 24,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Kill(context.Background(), "agency_r_1"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
