// Package mcp_test talks with agency mcp as an agent's program does: over its standard input and
// output, with a real daemon and scripted agents behind it.
package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency/test/fixture"
)

// timeout bounds every wait.
const timeout = 60 * time.Second

var bin string

func TestMain(m *testing.M) { os.Exit(fixture.Run(m, &bin)) }

// client is an agent's program that has the tools.
type client struct {
	t        *testing.T
	session  *sdk.ClientSession
	progress atomic.Int64
}

// newFixture returns an agency whose default runner follows its prompt as a script.
func newFixture(t *testing.T) *fixture.Fixture {
	t.Helper()
	f := fixture.New(t, bin)
	agent, err := filepath.Abs("../agent/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(f.Config)
	if err == nil {
		config = fmt.Appendf(config, "\n[defaults]\nrunner = \"scripted\"\n\n[runners.custom.scripted]\nexec = %q\ndefault_args = [\"{prompt_file}\"]\n", agent)
		err = os.WriteFile(f.Config, config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// connect starts agency mcp in dir and connects to it; it ends with the test.
func connect(t *testing.T, f *fixture.Fixture, dir string, env []string, args ...string) *client {
	t.Helper()
	c := &client{t: t}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "agency"), append([]string{"mcp"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(slices.Clone(f.Env), env...), os.Stderr
	user := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { c.progress.Add(1) },
	})
	var err error
	if c.session, err = user.Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.session.Close()
		cancel()
	})
	return c
}

// awaitProgress waits until tools have reported progress n times: their answers may overtake that.
func (c *client) awaitProgress(n int64) {
	c.t.Helper()
	for deadline := time.Now().Add(timeout); c.progress.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("progress was reported %d times, want %d", c.progress.Load(), n)
		}
	}
}

// object is a JSON object.
type object = map[string]any

// call calls a tool and decodes its answer. It returns the code of an error that the tool answered
// with.
func (c *client) call(into any, name string, args object) (code string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(name)
	result, err := c.session.CallTool(ctx, params)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		var failure struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(text), &failure); err != nil || failure.Error.Code == "" || failure.Error.Message == "" {
			c.t.Fatalf("%s: %v in %s", name, err, text)
		}
		c.t.Logf("%s: %s", name, text)
		return failure.Error.Code
	}
	if into == nil {
		into = &object{}
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		c.t.Fatalf("%s: %v in %s", name, err, text)
	}
	return ""
}

// failed calls a tool that must fail, and returns the code and the hint of its error.
func (c *client) failed(name string, args object) (code, hint string) {
	c.t.Helper()
	result, err := c.session.CallTool(c.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil || !result.IsError {
		c.t.Fatalf("%s did not fail: %v", name, err)
	}
	var failure struct {
		Error struct{ Code, Hint string }
	}
	if err := json.Unmarshal([]byte(result.Content[0].(*sdk.TextContent).Text), &failure); err != nil {
		c.t.Fatal(err)
	}
	return failure.Error.Code, failure.Error.Hint
}

// must is call for a tool that must succeed.
func (c *client) must(into any, name string, args object) {
	c.t.Helper()
	if code := c.call(into, name, args); code != "" {
		c.t.Fatalf("%s %v: %s", name, args, code)
	}
}

// refused is call for a tool that must fail with a code.
func (c *client) refused(code, name string, args object) {
	c.t.Helper()
	if got := c.call(nil, name, args); got != code {
		c.t.Errorf("%s %v: got %q, want %s", name, args, got, code)
	}
}

// worker is a run as the tools report it.
type worker struct {
	ID        string `json:"id"`
	Name      string
	Status    string
	Summary   string
	Tags      []string
	Awaiting  bool   `json:"is_awaiting_input"`
	Confirm   bool   `json:"is_awaiting_confirmation"`
	PromptID  string `json:"prompt_id"`
	Questions []string
}

// letter is a message in an inbox.
type letter struct {
	ID, From string
	Type     string `json:"msg_type"`
	Payload  struct {
		PromptID string `json:"prompt_id"`
	}
}

// usualTools are what every agent gets, and extraTools what --tools all adds.
var (
	usualTools = []string{
		"alerts_ack", "alerts_list", "config_list", "messages_ack", "messages_poll", "messages_send", "report_status",
		"run_answer", "run_create", "run_diff", "run_list", "run_output", "run_remove", "run_resume", "run_send", "run_status", "run_stop", "run_wait",
		"session_cancel", "session_plan", "session_resume", "session_retry", "session_show", "session_start", "session_wait",
	}
	extraTools = []string{
		"queue_add", "queue_show", "run_explain", "run_flag", "run_unflag", "run_interrupt", "run_review", "run_verify", "check_log", "session_list", "session_pause", "session_update", "watchdog_explain", "watchdog_start", "watchdog_status", "watchdog_stop",
	}
)

// names returns the tools that a client has, sorted, and how many bytes a model reads to know them.
func (c *client) names() (names []string, size int) {
	c.t.Helper()
	list, err := c.session.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		text, err := json.Marshal(tool)
		if err != nil || tool.Description == "" || strings.Contains(string(text), `"null"`) {
			c.t.Errorf("%s: %v, %q, %s", tool.Name, err, tool.Description, text)
		}
		size += len(text) + 1
	}
	slices.Sort(names)
	return names, size
}

func TestTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil)
	if got, size := c.names(); !slices.Equal(got, usualTools) || len(got) > 25 || size > 16<<10 {
		t.Errorf("got %d tools of %d bytes: %q\nwant %q", len(got), size, got, usualTools)
	}
	all := slices.Concat(usualTools, extraTools)
	slices.Sort(all)
	if got, _ := connect(t, f, f.Repo, nil, "--tools", "all").names(); !slices.Equal(got, all) {
		t.Errorf("got tools %q\nwant %q", got, all)
	}
	if text := c.session.InitializeResult().Instructions; !strings.Contains(text, "untrusted") {
		t.Errorf("instructions: %q", text)
	}
	c.refused("E_USAGE", "run_status", object{"rn": "x"})
	c.refused("E_USAGE", "run_status", object{})
	c.refused("E_USAGE", "run_wait", object{"runs": []string{}})
	c.refused("E_USAGE", "messages_poll", object{"wait_seconds": 1 << 55}) // a duration that overflows
	if code, hint := c.failed("run_status", object{"run": "unknown"}); code != "E_RUN_NOT_FOUND" || hint != "run_list(include_ended: true)" {
		t.Errorf("got %s with the hint %q", code, hint)
	}
	c.refused("E_SPEC_INVALID", "run_create", object{"prompt": " "})
}

// Each tmux server numbers its panes from the beginning: a stopped run shows its log, and not the
// terminal of another run.
func TestOutputIsTheRunsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil)
	for _, name := range []string{"first", "second"} {
		c.must(nil, "run_create", object{"name": name, "prompt": "say I am the " + name + "\nask Which colour?\nwait-file .agency/end\n"})
		c.must(nil, "run_wait", object{"runs": []string{name}, "timeout_seconds": 60})
		if name == "first" {
			c.must(nil, "run_stop", object{"run": name}) // and with it the tmux server
		}
	}
	for _, name := range []string{"first", "second"} {
		if text := c.awaitOutput(name, "I am the "+name); strings.Count(text, "I am the ") != 1 {
			t.Errorf("%s shows %q", name, text)
		}
	}
}

// awaitOutput waits until the output of a run contains a text, and returns it: a report of the run
// may be known before its terminal has shown what it printed.
func (c *client) awaitOutput(run, want string) string {
	c.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		var output struct{ Lines []string }
		c.must(&output, "run_output", object{"run": run})
		text := strings.Join(output.Lines, "\n")
		if strings.Contains(text, want) {
			return text
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s does not show %q: %q", run, want, text)
		}
	}
}

// workerList is the answer of run_list.
type workerList struct {
	Runs  []worker
	Ended int `json:"ended_omitted"`
}

// An orchestrator starts a worker, waits for its question, answers it, takes its work, and stops
// it.
func TestOrchestrate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	var created struct{ Run worker }
	c.must(&created, "run_create", object{
		"name": "fix", "tags": []string{"worker", "blue"},
		"prompt": "say hello \x1b[31mred\u202e\nask Which colour?\nwrite made.txt blue\nready Painted | cat made.txt\nwait-file .agency/end\n",
	})
	var waited struct {
		Runs     []worker
		TimedOut bool `json:"timed_out"`
	}
	c.must(&waited, "run_wait", object{"runs": []string{"fix"}, "timeout_seconds": 60})
	if r := waited.Runs[0]; waited.TimedOut || r.Status != "needs input" || !r.Awaiting || r.Confirm || r.PromptID == "" || r.Summary != "Which colour?" {
		t.Fatalf("got %+v", waited)
	}
	// A wait that ends at once reports progress too.
	before := c.progress.Load()
	for range 5 {
		c.must(&waited, "run_wait", object{"runs": []string{"fix"}})
	}
	c.awaitProgress(before + 5)
	var status worker
	c.must(&status, "run_status", object{"run": "fix"})
	if !slices.Equal(status.Questions, []string{"Which colour?"}) || status.PromptID != waited.Runs[0].PromptID {
		t.Errorf("got %+v", status)
	}
	var all workerList
	if c.must(&all, "run_list", nil); len(all.Runs) != 1 || !slices.Equal(all.Runs[0].Tags, []string{"worker", "blue"}) {
		t.Errorf("got %+v", all)
	}
	if text := c.awaitOutput("fix", "hello red"); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("got %q", text)
	}
	c.must(nil, "run_explain", object{"run": "fix"})
	c.must(nil, "watchdog_explain", object{"run": "fix"})

	c.refused("E_INVALID_STATE", "run_send", object{"run": "fix", "text": "red", "prompt_id": "needs_input@1"})
	c.refused("E_INVALID_STATE", "run_answer", object{"run": "fix", "text": "red", "prompt_id": "needs_input@1"})
	c.refused("E_USAGE", "run_answer", object{"run": "fix", "decision": "allow", "prompt_id": status.PromptID})
	c.must(nil, "run_answer", object{"run": "fix", "text": "blue", "prompt_id": status.PromptID})
	c.must(&waited, "run_wait", object{"runs": []string{"fix"}, "for": []string{"ready-for-review"}, "timeout_seconds": 60})
	c.refused("E_INVALID_STATE", "run_send", object{"run": "fix", "text": "red", "prompt_id": status.PromptID})

	var diff struct {
		Files []struct{ Status, Path string }
		Patch string
	}
	c.must(&diff, "run_diff", object{"run": "fix"})
	if len(diff.Files) != 1 || diff.Files[0].Path != "made.txt" || !strings.Contains(diff.Patch, "\n+blue\n") {
		t.Errorf("got %+v", diff)
	}
	if c.must(&waited, "run_wait", object{"runs": []string{"fix"}, "for": []string{"completed"}, "timeout_seconds": 1}); !waited.TimedOut {
		t.Errorf("got %+v", waited)
	}
	c.stopsAndResumes("fix", status.PromptID)
}

// stopsAndResumes stops the only run, which is then among the ended ones and takes no answer, and
// resumes it.
func (c *client) stopsAndResumes(run, prompt string) {
	t := c.t
	t.Helper()
	var status worker
	c.must(&status, "run_stop", object{"run": run})
	if status.Status != "ready for review" && status.Status != "killed" {
		t.Errorf("got %+v", status)
	}
	c.refused("E_INVALID_STATE", "run_answer", object{"run": run, "text": "red", "prompt_id": prompt})
	var all workerList
	if c.must(&all, "run_list", nil); len(all.Runs) != 0 || all.Ended != 1 {
		t.Errorf("the list of live runs is %+v", all)
	}
	if c.must(&all, "run_list", object{"include_ended": true}); len(all.Runs) != 1 || all.Ended != 0 {
		t.Errorf("the list of all runs is %+v", all)
	}
	c.must(nil, "run_resume", object{"run": run, "prompt": "say again"})
	c.must(nil, "run_wait", object{"runs": []string{run}, "timeout_seconds": 60})
}

// Inside a run the tools act as that run: it owns the runs that it starts, has its own inbox, and
// reports for itself.
func TestInsideRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	person := connect(t, f, f.Repo, nil)
	var created struct{ Run worker }
	person.must(&created, "run_create", object{"name": "boss", "prompt": "ask Go on?\nwait-file .agency/end"})
	person.must(nil, "run_wait", object{"runs": []string{"boss"}})
	var show struct {
		Data struct {
			Run struct {
				Worktree string `json:"worktree_path"`
			}
		}
	}
	if err := json.Unmarshal([]byte(f.Agency("show", "boss", "--json").Stdout), &show); err != nil {
		t.Fatal(err)
	}
	bossID := created.Run.ID
	env := environOf(t, bossID)
	boss := connect(t, f, show.Data.Run.Worktree, env)
	boss.must(&created, "run_create", object{"name": "hand", "prompt": "say hi\nask May I?"})
	boss.must(nil, "report_status", object{"status": "working", "summary": "Minding hand"})

	// The question of its worker arrives as a message, and stays until it is acknowledged.
	var inbox struct{ Messages []letter }
	boss.must(&inbox, "messages_poll", object{"wait_seconds": 50})
	if len(inbox.Messages) == 0 || inbox.Messages[0].Type != "worker.needs_input" || inbox.Messages[0].Payload.PromptID == "" {
		t.Fatalf("got %+v", inbox)
	}
	boss.must(nil, "run_answer", object{"run": "hand", "text": "yes", "prompt_id": inbox.Messages[0].Payload.PromptID})
	boss.must(nil, "messages_ack", object{"message_ids": []string{inbox.Messages[0].ID}})
	boss.must(nil, "messages_send", object{"to_owner": true, "text": "done"})
	boss.refused("E_PERMISSION_DENIED", "messages_send", object{"to_everyone": true, "text": "x"})
	boss.refused("E_USAGE", "messages_send", object{"to_owner": true})
	person.must(&inbox, "messages_poll", object{"wait_seconds": 50})
	if !slices.ContainsFunc(inbox.Messages, func(m letter) bool { return m.Type == "message" && m.From == bossID }) {
		t.Errorf("got %+v", inbox)
	}
	var alerts struct{ Alerts []object }
	person.must(&alerts, "alerts_list", object{"include_resolved": true})
	if len(alerts.Alerts) == 0 {
		t.Error("no alerts")
	}
}

// environOf returns the identity of a run, as its processes have it.
func environOf(t *testing.T, id string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, _ := os.ReadFile(path)
		env := strings.Split(string(data), "\x00")
		if slices.Contains(env, "AGENCY_RUN_ID="+id) {
			return slices.DeleteFunc(env, func(kv string) bool { return !strings.HasPrefix(kv, "AGENCY_") })
		}
	}
	t.Skip("this system does not show the environment of processes")
	return nil
}

// The tools see the runs of one repository, unless they were started for all.
func TestScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := filepath.Join(f.Root, "other")
	for _, args := range [][]string{{"init", "-q", other}, {"-C", other, "commit", "-q", "--allow-empty", "-m", "first"}} {
		if r := f.Command("", "git", args...); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	here, there := connect(t, f, f.Repo, nil, "--tools", "all"), connect(t, f, other, nil, "--tools", "all")
	all := connect(t, f, other, nil, "--all-repos", "--tools", "all")
	here.must(nil, "run_create", object{"name": "mine", "prompt": "say hi"})
	var runs struct{ Runs []worker }
	there.must(&runs, "run_list", nil)
	if len(runs.Runs) != 0 {
		t.Errorf("got %+v", runs)
	}
	for _, tool := range []string{"run_status", "run_explain", "run_output", "run_diff", "run_stop", "run_resume", "run_unflag", "watchdog_explain", "watchdog_start"} {
		there.refused("E_RUN_NOT_FOUND", tool, object{"run": "mine"})
		here.refused("E_USAGE", tool, object{"run": ""}) // and never the first run in the list
	}
	there.refused("E_RUN_NOT_FOUND", "run_send", object{"run": "mine", "text": "x"})
	there.refused("E_RUN_NOT_FOUND", "run_flag", object{"run": "mine", "reason": "x"})
	there.refused("E_RUN_NOT_FOUND", "run_answer", object{"run": "mine", "text": "x", "prompt_id": "x@1"})
	there.refused("E_RUN_NOT_FOUND", "run_wait", object{"runs": []string{"mine"}})
	there.refused("E_RUN_NOT_FOUND", "messages_send", object{"to_run": "mine", "text": "x"})
	there.refused("E_RUN_NOT_FOUND", "alerts_list", object{"run": "mine"})
	all.must(nil, "run_status", object{"run": "mine"})
	here.must(nil, "run_wait", object{"runs": []string{"mine"}})

	// They do not see its timers and alerts either.
	here.must(nil, "run_create", object{"name": "asks", "prompt": "ask Which?"})
	here.must(nil, "watchdog_start", object{"run": "asks", "name": "wake", "interval_seconds": 3600})
	here.must(nil, "run_wait", object{"runs": []string{"asks"}})
	var alerts struct{ Alerts []struct{ ID string } }
	for deadline := time.Now().Add(timeout); len(alerts.Alerts) == 0; {
		if here.must(&alerts, "alerts_list", object{"run": "asks"}); time.Now().After(deadline) {
			t.Fatal("no alert")
		}
	}
	seen := object{"alert_ids": []string{alerts.Alerts[0].ID}}
	there.refused("E_ALERT_NOT_FOUND", "alerts_ack", seen)
	there.refused("E_TIMER_NOT_FOUND", "watchdog_stop", object{"name": "wake"})
	for c, want := range map[*client]bool{here: true, there: false, all: true} {
		var status struct {
			Timers []struct{ Name string }
			Open   int `json:"open_alerts"`
		}
		if c.must(&status, "watchdog_status", nil); len(status.Timers) == 1 != want || status.Open > 0 != want {
			t.Errorf("got %+v, want any: %v", status, want)
		}
	}
	all.must(nil, "alerts_ack", seen)
	here.must(nil, "alerts_ack", seen)
	here.must(nil, "watchdog_stop", object{"name": "wake"})
	here.must(nil, "run_stop", object{"run": "asks"})
}
