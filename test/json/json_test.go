// Package json_test keeps the output of every command with --json: a changed shape shows as a
// changed file.
package json_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/test/fixture"
)

var update = flag.Bool("update", false, "write the files in testdata")

// version is the version of the program under test.
const version = "v0.0.0-under-test"

// bench is a program, a repository and a data root of their own.
type bench struct {
	dir string // short, because a socket's path is
	bin string
	env []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "aj")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir, bin: filepath.Join(dir, "bin", "agency")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "AGENCY_") && !strings.HasPrefix(name, "TMUX") && !strings.HasPrefix(name, "GIT_") {
			b.env = append(b.env, kv)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version="+version, "-o", b.bin, "agency/cmd/agency")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		b.run(t, b.dir, "", b.bin, "daemon", "stop")
		b.run(t, b.dir, "", "tmux", "-S", b.path("tmux"), "kill-server")
	})
	b.env = append(b.env, "HOME="+dir, "AGENCY_HOME="+filepath.Join(dir, "home"), "AGENCY_CONFIG="+b.path("config.toml"),
		"LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	agent, err := filepath.Abs("../agent/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "agent.sh", fmt.Sprintf("#!/bin/sh\nexec sh '%s' \"$@\"\n", agent))
	file := fmt.Sprintf("[defaults]\nrunner = \"scripted\"\n[tmux]\nsocket = %q\n", b.path("tmux"))
	for _, kind := range config.RunnerKinds() {
		file += fmt.Sprintf("[runners.%s]\nexec = \"no-such-%s\"\n", kind, kind)
	}
	b.write(t, "config.toml", file+fmt.Sprintf("[runners.custom.scripted]\nexec = %q\ndefault_args = [\"{prompt_file}\"]\n", b.path("agent.sh")))
	b.write(t, "bad.toml", "[defaults]\nrunnr = \"shell\"\n")
	b.write(t, "presets.toml", "[presets.worker]\nharness = \"claude\"\n[presets.worker.config]\nmodel = \"large\"\nenv = [\"SECRET=1\"]\nsystem_prompt_file = \"role.md\"\n")
	b.write(t, "role.md", "Be brief.\n")
	b.write(t, "repo/read.me", "hello\n")
	b.write(t, "spec.json", fmt.Sprintf(`{"name": "one-shot", "prompt": {"text": "wait-file %s\nsay hello\nwrite note.txt kept"}, "tags": ["nightly"],
		"inputs": [{"path": "read.me"}], "headless": true}`, b.path("go-one-shot")))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "."},
		{"config", "user.name", "T"},
		{"config", "user.email", "t@example.invalid"},
		{"commit", "-q", "-m", "Begin"},
	} {
		if r := b.run(t, b.path("repo"), "", "git", args...); r.exit != 0 {
			t.Fatalf("git %q: %s", args, r.err)
		}
	}
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fixture.WriteProgram(b.path(name), text); err != nil {
		t.Fatal(err)
	}
}

type result struct {
	out, err string
	exit     int
}

func (b *bench) run(t *testing.T, dir, in, name string, args ...string) result {
	t.Helper()
	// Cleaning up happens after the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, b.env, strings.NewReader(in), &out, &err
	cmd.WaitDelay = 5 * time.Second
	failed := new(exec.ExitError)
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return result{out.String(), err.String(), cmd.ProcessState.ExitCode()}
}

// normal replaces what differs from run to run and from machine to machine.
func (b *bench) normal(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, b.dir, "<PATH>"), version, "<VERSION>")
	for _, r := range []struct{ pattern, with string }{
		{`r_[0-9A-HJKMNP-TV-Z]{26}\b`, "<RUN_ID>"},
		{`l_[0-9A-HJKMNP-TV-Z]{26}\b`, "<LANDING_ID>"},
		{`already, as [0-9a-f]{12}"`, `already, as <SHA>"`},
		{`\b[0-9]{8}-[0-9]{6}-[0-9a-f]{8}\b`, "<SESSION_ID>"},
		{`\b[0-9]{4}-a00[12]-[0-9a-f]{4}-[0-9a-f]{4}\b`, "<HANDLE>"},
		{`\ba00([12])-[0-9a-f]{4}\b`, "a00$1-<HASH>"},
		{`"duration_seconds": [0-9]+`, `"duration_seconds": "<SECONDS>"`},
		{`\b[0-9]{4}-[a-z][a-z0-9-]*-[0-9a-f]{4}\b`, "<HANDLE>"},
		{`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "<UUID>"},
		{`\b[0-9a-f]{40}([0-9a-f]{24})?\b`, "<SHA>"},
		{`\b2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, "<TIME>"},
		{`"pid":( ?)[0-9]+`, `"pid":$1"<PID>"`},
		{`"start_ticks": [0-9]+`, `"start_ticks": "<TICKS>"`},
		{`"boot_id": "[^"]+"`, `"boot_id": "<BOOT_ID>"`},
		{`"bytes": [1-9][0-9]*`, `"bytes": "<BYTES>"`},
		{`[0-9.]+ [KMG]iB, and worktrees of [0-9.]+ ([KMG]iB|B)`, "<SIZE>, and worktrees of <SIZE>"},
		{`"(last_)?seq":( ?)[0-9]+`, `"${1}seq":$2"<SEQ>"`},
		{`"commit": ""`, `"commit": "<SHA>"`},
		{`"go": "[^"]+"`, `"go": "<VERSION>"`},
		{`"(os|arch)": "[^"]+"`, `"$1": "<PLATFORM>"`},
		{`"text": "[0-9]+\.[0-9]+[0-9a-z.]*"`, `"text": "<VERSION>"`},
		{`pid [0-9]+, version`, "pid <PID>, version"},
		{`alive, pid [0-9]+`, "alive, pid <PID>"},
		{`needs_input@[0-9]{13}`, "needs_input@<TIME>"},
		{`"age_ms": [0-9]+`, `"age_ms": "<AGE>"`},
		{`nothing new for [0-9]+s`, "nothing new for <AGE>"},
		{`up [0-9]+[a-z]+,`, "up <TIME>,"},
		{`"text": "time=.*`, `"text": "<LOG>"`},
		{`"last_output": (null|"<TIME>")`, `"last_output": "<TIME OR NULL>"`},
		{`"diff":( ?)(null|\{\s*"files": ?[0-9]+,\s*"added": ?[0-9]+,\s*"deleted": ?[0-9]+\s*\})`, `"diff":$1"<CHANGES OR NULL>"`},
		{`"%[0-9]+"`, `"<PANE>"`},
		{`"/[^"]*/tmux"`, `"<TMUX>"`},
		{`"sandbox_problem": "[^"]*"`, `"sandbox_problem": "<PROBLEM OR EMPTY>"`},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./test/json -update", err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); go test ./test/json -update\n%s", path, diff)
	}
}

// leaveWork changes the worktree of the one run that is not removed.
func (b *bench) leaveWork(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(b.path("home/worktrees/*/*/read.me"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the worktrees hold %q (%v)", files, err)
	}
	if err := os.WriteFile(files[0], []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// await waits until a command prints what a pattern matches.
func (b *bench) await(t *testing.T, pattern string, args ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r := b.run(t, b.path("repo"), "", b.bin, args...)
		if regexp.MustCompile(pattern).MatchString(r.out) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q does not print %s: %s%s", args, pattern, r.out, r.err)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	commands(t, b)
	streams(t, b)
}

// commands runs the commands of one day, in their order. Each prints one envelope and nothing else.
func commands(t *testing.T, b *bench) {
	t.Helper()
	shapes := readShapes(t)
	for _, step := range slices.Concat(before, ofRun, ofWork, ofEnd, ofSession, ofRepository, ofHand, after) {
		args := strings.Fields(strings.ReplaceAll(step.args, "PATH", b.dir))
		switch step.name {
		case "wait-for": // from here on the agents may do what must not yet show in the answer to their start
			b.write(t, "go-paint", "")
		case "session-wait-needs-user": // the session records the pid a moment after the start
			b.await(t, `"pid": ?[1-9]`, "session", "show", "mural", "--json")
			b.write(t, "go-mural", "")
		case "watchdog-status": // which counts the alert about the question
			b.await(t, `"worker.needs_input"`, "alerts", "--json")
		case "report": // as if this were the worktree of a run
			if err := os.MkdirAll(b.path("repo/"+agency.StateDir), 0o700); err != nil {
				t.Fatal(err)
			}
		case "ls-none":
			if err := os.RemoveAll(b.path("repo/" + agency.DotDir)); err != nil {
				t.Fatal(err)
			}
		case "wait-completed":
			b.write(t, "go-one-shot", "")
		case "comment":
			b.leaveWork(t)
		}
		r := b.run(t, b.path("repo"), strings.ReplaceAll(step.in, "PATH", b.dir), b.bin, append(args, "--json")...)
		if r.exit != step.exit || r.err != "" {
			t.Errorf("%s: exit status %d, want %d, and on stderr %q", step.args, r.exit, step.exit, r.err)
		}
		var env api.Envelope
		if err := api.Decode([]byte(r.out), &env); err != nil || env.OK == (env.Error != nil) || !strings.HasSuffix(r.out, "}\n") {
			t.Errorf("%s: not one envelope: %v\n%s", step.args, err, r.out)
		}
		if env.OK {
			shapes.check(t, step.args, r.out)
		}
		if step.name == "events" {
			r.out = sorted(t, r.out)
		}
		golden(t, step.name, b.normal(r.out))
	}
	shapes.checkAll(t)
}

// sorted sorts events by their type and data: whether the session or its runner is noticed first is
// chance.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var all api.ListEventsResponse
	if err := api.Decode([]byte(text), &api.Envelope{Data: &all}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all.Events, func(a, b agency.Event) int {
		return cmp.Or(strings.Compare(string(a.Type), string(b.Type)), bytes.Compare(a.Data, b.Data))
	})
	var out bytes.Buffer
	if err := api.Encode(&out, api.Success(all)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// streams runs the commands that print an envelope for each line, and interrupts them.
func streams(t *testing.T, b *bench) {
	t.Helper()
	for name, args := range map[string][]string{
		"events-follow": {"events", "--follow", "--json"},
		"ls-watch":      {"ls", "--watch", "--json"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, b.bin, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = b.path("repo"), b.env, os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		var env api.Envelope
		if err := api.Decode([]byte(line), &env); err != nil || !env.OK {
			t.Errorf("%s: %q: %v", name, line, err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s, interrupted: %v", name, err)
		}
		golden(t, name, b.normal(line))
	}
}
