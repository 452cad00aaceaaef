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
	b.write(t, "spec.json", fmt.Sprintf(`{"name": "one-shot", "prompt": {"text": "wait-file %s\nsay hello"}, "tags": ["nightly"],
		"inputs": [{"path": "read.me"}], "headless": true}`, b.path("go-one-shot")))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "Begin"},
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
	cmd.WaitDelay = 500 * time.Millisecond
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
		{`\b[0-9]{8}-[0-9]{6}-[0-9a-f]{8}\b`, "<SESSION_ID>"},
		{`\ba001-[0-9a-f]{4}\b`, "a001-<HASH>"},
		{`"duration_seconds": [0-9]+`, `"duration_seconds": "<SECONDS>"`},
		{`\b[0-9]{4}-[a-z][a-z0-9-]*-[0-9a-f]{4}\b`, "<HANDLE>"},
		{`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "<UUID>"},
		{`\b[0-9a-f]{40}([0-9a-f]{24})?\b`, "<SHA>"},
		{`\b2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, "<TIME>"},
		{`"pid":( ?)[0-9]+`, `"pid":$1"<PID>"`},
		{`"start_ticks": [0-9]+`, `"start_ticks": "<TICKS>"`},
		{`"boot_id": "[^"]+"`, `"boot_id": "<BOOT_ID>"`},
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
		{`"%[0-9]+"`, `"<PANE>"`},
		{`"/[^"]*/tmux"`, `"<TMUX>"`},
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

func TestJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	commands(t, b)
	streams(t, b)
}

// commands runs the commands of one day, in their order. Each prints one envelope and nothing else.
func commands(t *testing.T, b *bench) {
	t.Helper()
	prompt := "wait-file " + b.path("go-paint") + "\nask Which colour?\nready Painted it | look at it\nwait-file never\n"
	steps := []struct {
		name string // of the file
		args string // words of the command line; PATH is the bench's folder
		exit int
		in   string
	}{
		{"version", "version", 0, ""},
		{"config-path", "config path", 0, ""},
		{"config-show", "config show", 0, ""},
		{"config-check", "config check", 0, ""},
		{"config-check-invalid", "config check --config PATH/bad.toml", 1, ""},
		{"presets-none", "presets ls", 0, ""},
		{"presets-ls", "presets ls --config PATH/presets.toml", 0, ""},
		{"presets-show", "presets show worker --config PATH/presets.toml", 0, ""},
		{"daemon-status-none", "daemon status", 3, ""},
		{"daemon-start", "daemon start", 0, ""},
		{"daemon-status", "daemon status", 0, ""},
		{"doctor", "doctor", 0, ""},
		{"schemas", "schema", 0, ""},
		{"schema", "schema runner-status", 0, ""},
		{"schema-plan", "schema plan", 0, ""},
		{"session-plan", "session plan -", 0, "name: paint\nagents:\n- {id: 001, prompt: say hello}\n- {id: 002, prompt: say bye, after: [001], timeout: 2h}\n"},
		{"session-plan-invalid", "session plan -", 2, "agents:\n- {id: 001, promt: say hello}\n"},
		{"report-nowhere", "report working --summary Painting", 1, ""},
		{"report", "report working --summary Painting --quiet-for 20m", 0, ""},
		{"report-help", "report help", 0, ""},
		{"report-incomplete", "report needs-input --summary Colours", 2, ""},
		{"ls-none", "ls", 0, ""},
		{"notify-none", "notify test", 2, ""},
		{"notify-ls", "notify ls", 0, ""},
		{"run", "run --name paint --type build --tag worker --prompt -", 0, prompt},
		{"wait-for", "wait paint --for needs-input --timeout 30s", 0, ""},
		{"wait-needs-person", "wait paint --timeout 30s", 8, ""},
		{"ls", "ls", 0, ""},
		{"api", "api run.list -", 0, `{"status": ["needs-input"], "removed": true}`},
		{"api-unknown", "api run.lst", 2, ""},
		{"api-mistake", "api run.list -", 2, `{"stauts": []}`},
		{"show", "show paint", 0, ""},
		{"explain", "explain paint", 0, ""},
		{"attach", "attach paint", 0, ""},
		{"watchdog-start", "watchdog start --run paint --interval 3600 --message check", 0, ""},
		{"wait-timeout", "wait paint --for completed --timeout 50ms", 5, ""},
		{"watchdog-status", "watchdog status", 0, ""},
		{"watchdog-stop", "watchdog stop paint", 0, ""},
		{"watchdog-stop-none", "watchdog stop paint", 3, ""},
		{"rm-running", "rm paint", 4, ""},
		{"resume-running", "resume paint", 4, ""},
		{"resume-lost", "resume --all-lost", 0, ""},
		{"answer-late", "answer paint blue --prompt-id needs_input@1", 4, ""},
		{"answer-nothing", "answer one-shot allow", 3, ""},
		{"send", "send paint -", 0, "blue\n"},
		{"wait", "wait paint --for ready-for-review --timeout 30s", 0, ""},
		{"diff", "diff paint", 0, ""},
		{"stop", "stop paint", 0, ""},
		{"stop-again", "stop paint", 0, ""},
		{"flag", "flag paint look at the colour", 0, ""},
		{"flag-no-reason", "flag paint", 2, ""},
		{"unflag", "unflag paint", 0, ""},
		{"unflag-again", "unflag paint", 0, ""},
		{"send-ended", "send paint blue", 4, ""},
		{"attach-ended", "attach paint", 3, ""},
		{"run-spec", "run --spec PATH/spec.json", 0, ""},
		{"wait-completed", "wait one-shot --timeout 30s", 0, ""},
		{"show-completed", "show one-shot", 0, ""},
		{"logs", "logs one-shot", 0, ""},
		{"events", "events --run one-shot", 0, ""},
		{"rm", "rm one-shot", 0, ""},
		{"rm-again", "rm one-shot", 0, ""},
		{"rm-snapshot", "rm paint --delete-branch", 0, ""},
		{"ls-removed", "ls --all --tag nightly", 0, ""},
		{"show-unknown", "show no-such-run", 3, ""},
		{"usage-flag", "ls --al", 2, ""},
		{"usage-arguments", "show", 2, ""},
		{"usage-command", "lst", 2, ""},
		{"run-no-task", "run", 2, ""},
		{"run-no-runner", "run --runner aider --prompt a", 1, ""},
		{"session-start", "session start - --name mural", 0, "agents:\n- {id: 001, prompt: ask which colour}\n- {id: 002, prompt: say bye, after: [001]}\n"},
		{"session-wait-needs-user", "session wait mural --attention --timeout 30s", 8, ""},
		{"session-wait-timeout", "session wait mural --timeout 50ms", 5, ""},
		{"session-pause", "session pause mural", 0, ""},
		{"session-resume", "session resume mural", 0, ""},
		{"session-resume-running", "session resume mural", 4, ""},
		{"session-retry-running", "session retry mural", 4, ""},
		{"session-cancel", "session cancel mural", 0, ""},
		{"session-wait-cancelled", "session wait mural --timeout 30s", 4, ""},
		{"gc-session", "gc --older-than 0s --apply", 0, ""},
		{"init-dry-run", "init --dry-run --type go --agent-runs", 0, ""},
		{"init", "init --type go --setup read.me", 0, ""},
		{"init-invalid", "init --sandbox container", 2, ""},
		{"trust-show", "trust --show", 0, ""},
		{"trust-revoke", "trust --revoke", 0, ""},
		{"run-untrusted", "run --prompt a", 8, ""},
		{"trust", "trust", 0, ""},
		{"session-ls-none", "session ls", 0, ""},
		{"session-create", "session create --name night --source-file plan.md --agent 001:paint:1 --agent 002:dry:2", 0, ""},
		{"session-update", "session update night --agent 001 start --pid 4711", 0, ""},
		{"session-update-refused", "session update night --agent 002 complete", 4, ""},
		{"session-running", "session show night --running", 0, ""},
		{"session-is-complete", "session show night --is-complete", 1, ""},
		{"session-rm-running", "session rm night", 4, ""},
		{"session-update-cancel", "session update night cancel --error rain", 0, ""},
		{"session-show-outside", "session show night", 0, ""},
		{"session-ls", "session ls", 0, ""},
		{"session-rm-old", "session rm --older-than 7d", 0, ""},
		{"session-rm", "session rm night", 0, ""},
		{"session-show-none", "session show night", 3, ""},
		{"daemon-logs", "daemon logs", 0, ""},
		{"daemon-stop", "daemon stop", 0, ""},
		{"daemon-stop-none", "daemon stop", 0, ""},
	}
	shapes := readShapes(t)
	for _, step := range steps {
		args := strings.Fields(strings.ReplaceAll(step.args, "PATH", b.dir))
		switch step.name {
		case "wait-for": // from here on the agents may do what must not yet show in the answer to their start
			b.write(t, "go-paint", "")
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
		case "rm-snapshot":
			b.leaveWork(t)
		}
		r := b.run(t, b.path("repo"), step.in, b.bin, append(args, "--json")...)
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
