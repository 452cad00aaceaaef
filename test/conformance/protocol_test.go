package conformance_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/harness"
	"agency/test/conformance/modelserver"
)

// The mode protocol with the real agent: everything that a user can do, and kill -9 of everything but
// the agent.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for _, runner := range speaking(false) {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			testStates(t, runner, map[string]state{
				"allow":         protocolAllow,
				"deny":          protocolDeny,
				"question":      protocolQuestion,
				"interrupt":     protocolInterrupt,
				"tried again":   protocolRetry,
				"kill wrapper":  protocolKillWrapper,
				"kill daemon":   protocolKillDaemon,
				"agent ends":    protocolAgentEnds,
				"stop":          protocolStop,
				"resumed":       protocolResumed,
				"other refused": protocolRefused,
				"sandbox":       protocolSandbox,
				"picture":       protocolPicture,
			})
		})
	}
}

// speaking returns the agents that speak the Agent Client Protocol, or those that speak their own.
func speaking(acp bool) []string {
	return slices.DeleteFunc(runners(), func(r string) bool { return harness.Dialect(agency.RunnerKind(r), "").OneAtATime != acp })
}

// The Agent Client Protocol has no questions.
func TestProtocolACP(t *testing.T) {
	t.Parallel()
	for _, runner := range speaking(true) {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			testStates(t, runner, map[string]state{
				"allow":        protocolAllow,
				"deny":         protocolDeny,
				"interrupt":    protocolInterrupt,
				"at work":      protocolAtWork,
				"kill wrapper": protocolKillWrapper,
				"kill daemon":  protocolKillDaemon,
				"stop":         protocolStop,
				"picture":      protocolPicture,
				"sandbox":      protocolSandbox,
				"resumed":      map[bool]state{true: protocolLost, false: protocolResumed}[runner == "gemini"],
			})
		})
	}
}

// Agents that have a tool for the list of their work tell it in their protocols, and agency shows it.
func TestProtocolTodos(t *testing.T) {
	t.Parallel()
	for _, runner := range slices.Concat(speaking(false), speaking(true)) {
		if len(setups[agency.RunnerKind(runner)].todos) > 0 {
			t.Run(runner, func(t *testing.T) {
				t.Parallel()
				testStates(t, runner, map[string]state{"todos": protocolTodos})
			})
		}
	}
}

func protocolTodos(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, slices.Concat(a.todos, []modelserver.Turn{{Text: "That is the plan."}}, a.todosDone, []modelserver.Turn{{Text: "On it."}}))
	run := f.start(a, append([]string{"--mode", "protocol"}, a.todoArgs...)...)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	f.checkTodos(run, agency.TodoCompleted, agency.TodoInProgress)
	if text := f.output(binary, "show", string(run.ID)); !strings.Contains(text, "todos:\n  [x] "+firstStep+"\n  [>] "+secondStep+"\n") {
		t.Errorf("show has no list:\n%s", text)
	}
	if log := f.output(binary, "logs", string(run.ID)); !strings.Contains(log, "1 of 2 steps done, now: "+secondStep) {
		t.Errorf("the conversation has no list:\n%s", log)
	}
	// The next attempt continues the conversation, and so its list.
	f.agency(nil, append([]string{"resume", "--restart", string(run.ID), "--prompt", "go on"}, a.todoEnv()...)...)
	if len(a.todosDone) == 0 {
		f.checkTodos(run, agency.TodoCompleted, agency.TodoInProgress)
		return
	}
	f.watch(run).await(agency.Waiting)
	f.checkTodos(run, agency.TodoCompleted, agency.TodoCompleted)
}

// todoEnv returns the environment of a run that has tools for the list of its work, which another attempt
// needs again.
func (a *agent) todoEnv() []string {
	if len(a.todoArgs) > 0 && a.todoArgs[0] == "--env" {
		return a.todoArgs
	}
	return nil
}

// checkTodos checks the states of the steps of a run's list.
func (f *fixture) checkTodos(run api.Run, states ...agency.TodoState) {
	f.t.Helper()
	var shown api.ShowRunResponse
	f.agency(&shown, "show", string(run.ID))
	var texts []string
	var got []agency.TodoState
	for _, todo := range shown.Todos {
		texts, got = append(texts, todo.Text), append(got, todo.State)
	}
	if !slices.Equal(texts, []string{firstStep, secondStep}) || !slices.Equal(got, states) {
		f.t.Errorf("the list is %+v, want %v", shown.Todos, states)
	}
}

// A message would end the turn of such an agent, so agency refuses it and writes nothing.
func protocolAtWork(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "Long work.", Gate: gate}, modelserver.Turn{Text: "And more."})
	f.asked(0)
	tl.await(agency.Working)
	f.rejects(agency.CodeInvalidState, "is at work", "send", string(run.ID), "and now?")
	close(gate)
	tl.await(agency.Waiting)
	f.agency(nil, "send", string(run.ID), "go on")
	f.asked(1)
	if heard := f.body(1); strings.Contains(heard, "and now?") || !strings.Contains(heard, "go on") {
		t.Errorf("the model heard\n%s", heard)
	}
	tl.await(agency.Waiting)
}

// Claude Code runs subagents side by side.
func TestProtocolSubagents(t *testing.T) {
	t.Parallel()
	testStates(t, "claude_code", map[string]state{"two at once": protocolTwo})
}

var touch = modelserver.Turn{Text: "I make it.", Shell: "touch made.txt", Leave: true}

// speak starts a run in the mode protocol.
func speak(t *testing.T, binary string, a agent, scenario ...modelserver.Turn) (*fixture, api.Run, *timeline) {
	t.Helper()
	f := newFixture(t, binary, a, scenario)
	run := f.start(a, append([]string{"--mode", "protocol"}, a.speaks...)...)
	return f, run, f.watch(run)
}

// answers answers the open request, and fails unless the agent acknowledged it.
func (f *fixture) answers(run api.Run, text string, flags ...string) {
	f.t.Helper()
	var answered api.AnswerRunResponse
	f.agency(&answered, append([]string{"answer", string(run.ID), text}, flags...)...)
	if !answered.Confirmed {
		f.t.Errorf("the agent did not acknowledge %q", text)
	}
}

// rejects fails unless a command fails with a code and words.
func (f *fixture) rejects(code agency.Code, words string, args ...string) {
	f.t.Helper()
	out, err := f.command(f.binary, args...)
	if err == nil || !strings.Contains(err.Error(), string(code)) || !strings.Contains(err.Error(), words) {
		f.t.Errorf("agency %s: got %q, %v, want %s and %q", strings.Join(args, " "), out, err, code, words)
	}
}

func (f *fixture) made(run api.Run) bool {
	_, err := os.Stat(filepath.Join(run.Worktree, "made.txt"))
	return err == nil
}

func protocolAllow(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch, modelserver.Turn{Text: "It is made."})
	asks := tl.await(agency.NeedsInput)
	if r := asks.Request; r == nil || r.Kind != agency.AsksPermission || r.Tool != a.shell() || r.ID == "" || r.Confidence != 1 || asks.Decided != agency.DecidedBy(agency.FromProtocol) {
		t.Errorf("got %+v, decided by %s", r, asks.Decided)
	}
	f.answers(run, "allow")
	tl.await(agency.Waiting)
	tl.checkPassing(agency.Working, agency.NeedsInput, agency.Waiting)
	f.rejects(agency.CodeInvalidState, "was answered by user", "answer", string(run.ID), "deny", "--prompt-id", asks.Request.ID)
	if !f.made(run) {
		t.Error("the command was not run")
	}
	log := f.output(binary, "logs", string(run.ID))
	for _, want := range []string{"● I make it.\n", "? 1: may it use " + a.shell() + "? touch made.txt\n", "> request 1: allow\n— request 1 taken\n", "● It is made.\n— turn ended\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	for line := range strings.Lines(f.output(binary, "logs", "--wire", string(run.ID))) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the wire has %q", line)
		}
	}
}

// A picture that comes with the task or with a message reaches the model.
func protocolPicture(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, []modelserver.Turn{{Text: "It is red."}, {Text: "And this is blue."}})
	red, seesRed := f.picture("Screen shot (2).png", color.RGBA{R: 255, A: 255})
	blue, seesBlue := f.picture("blue.png", color.RGBA{B: 255, A: 255})
	run := f.start(a, append([]string{"--mode", "protocol", "--with", red}, a.speaks...)...)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	f.agency(nil, "send", string(run.ID), "and this one?", "--with", blue)
	f.asked(1)
	if heard := f.body(1); !strings.Contains(heard, "Attached: .agency/files/blue.png") || !strings.Contains(heard, "and this one?") {
		t.Errorf("the model heard\n%s", heard)
	}
	if a.links {
		seesRed, seesBlue = "/.agency/files/Screen-shot--2.png]", "/.agency/files/blue.png]"
	}
	if heard := f.body(0); !strings.Contains(heard, seesRed) {
		t.Errorf("the model did not see the picture of its task, but\n%s", heard)
	}
	if heard := f.body(1); !strings.Contains(heard, seesBlue) {
		t.Errorf("the model did not see the picture of the message, but\n%s", heard)
	}
	tl.await(agency.Waiting)
}

// picture makes a picture of one colour, and returns its path and how its beginning is encoded in a
// request to a model.
func (f *fixture) picture(name string, c color.Color) (path, encoded string) {
	f.t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewPaletted(image.Rect(0, 0, 64, 48), color.Palette{c})); err != nil {
		f.t.Fatal(err)
	}
	path = filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, picture.Bytes(), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path, base64.StdEncoding.EncodeToString(picture.Bytes())[:76]
}

func protocolDeny(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch, modelserver.Turn{Text: "Then not."})
	tl.await(agency.NeedsInput)
	f.answers(run, "deny")
	tl.await(agency.Waiting)
	if f.made(run) {
		t.Error("the command was run")
	}
}

func protocolQuestion(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, modelserver.Turn{Ask: "Which colour?"}, modelserver.Turn{Text: "Thanks."})
	asks := tl.await(agency.NeedsInput)
	if r := asks.Request; r == nil || r.Kind != agency.AsksQuestion || len(r.Options) < 2 {
		t.Errorf("got %+v", r)
	}
	f.rejects(agency.CodeUsage, "asks a question", "answer", string(run.ID), "allow")
	f.answers(run, "blue")
	tl.await(agency.Waiting)
	f.asked(1)
	if heard := f.body(1); !strings.Contains(heard, `Blue`) {
		t.Errorf("the model heard\n%s", heard)
	}
}

// Two subagents ask at once, and each gets its own answer, in the other order.
func protocolTwo(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a,
		helping("one", modelserver.Turn{Shell: "mkdir first"}, modelserver.Turn{Text: "It is made."}),
		helping("two", modelserver.Turn{Shell: "mkdir second"}, modelserver.Turn{Text: "It is made too."}),
		modelserver.Turn{Text: "Both are at work."}, modelserver.Turn{Text: "One has ended."}, modelserver.Turn{Text: "Both have ended."},
	)
	tl.await(agency.NeedsInput)
	var requests []agency.Request
	f.until("two requests", func() bool {
		var shown api.ShowRunResponse
		f.agency(&shown, "show", string(run.ID))
		requests = shown.Requests
		return len(requests) == 2
	})
	f.rejects(agency.CodeUsage, "asks 2 things at once", "answer", string(run.ID), "allow")
	f.answers(run, "allow", "--prompt-id", requests[1].ID)
	f.answers(run, "allow", "--prompt-id", requests[0].ID)
	tl.await(agency.Waiting)
}

func protocolInterrupt(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	defer close(gate)
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "Never said.", Gate: gate}, modelserver.Turn{Text: "Here I am."})
	f.asked(0)
	tl.await(agency.Working)
	var interrupted api.InterruptRunResponse
	f.agency(&interrupted, "interrupt", string(run.ID))
	if !interrupted.Confirmed || interrupted.Queued != 0 {
		t.Errorf("got %+v", interrupted)
	}
	tl.awaitSummary(agency.Waiting, "(interrupted)")
	f.rejects(agency.CodeInvalidState, "nothing to interrupt", "interrupt", string(run.ID))
	var sent api.SendInputResponse
	f.agency(&sent, "send", string(run.ID), "go on")
	if !sent.Confirmed || sent.Effect != string(agency.EffectTaken) {
		t.Errorf("got %+v", sent)
	}
	tl.await(agency.Working)
}

func protocolRetry(t *testing.T, binary string, a agent) {
	_, _, tl := speak(t, binary, a, modelserver.Turn{Text: "At last.", Status: http.StatusTooManyRequests, Failure: modelserver.Failure{Times: 2, RetryAfter: 2 * time.Second}})
	tl.awaitSummary(agency.Working, "rate limit")
	tl.await(agency.Waiting)
}

// killed kills a process of an attempt by the record of its start.
func (f *fixture) wrapperOf(run api.Run) (start agency.Start) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(run.RunDir, "attempts", "1", "started.json"))
	if err == nil {
		err = json.Unmarshal(data, &start)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return start
}

// killWrapper kills the wrapper, and waits until another one has adopted the agent.
func (f *fixture) killWrapper(run api.Run) {
	f.t.Helper()
	before := f.wrapperOf(run)
	if err := syscall.Kill(before.Wrapper.PID, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.until("another wrapper", func() bool {
		after := f.wrapperOf(run)
		return after.Wrapper.PID != before.Wrapper.PID && after.Runner == before.Runner
	})
}

// The next wrapper finds a sandbox and its agent, too, which reaches its model through that wrapper.
func protocolSandbox(t *testing.T, binary string, a agent) {
	f := newProxied(t, binary, &a, []modelserver.Turn{touch, {Text: "It is made."}})
	run := f.start(a, slices.Concat([]string{"--mode", "protocol", "--sandbox", "process", "--network", "allow", "--memory", "8g"}, throughProxy, a.speaks)...)
	tl := f.watch(run)
	tl.await(agency.NeedsInput)
	f.killWrapper(run)
	f.answers(run, "allow")
	tl.await(agency.Waiting)
	if !f.made(run) {
		t.Error("the command was not run")
	}
	f.agency(nil, "stop", string(run.ID))
	f.checkGone(run.ID)
}

// The wrapper is killed at each step: while the model works, while a request is open, and after the
// answer. The agent and its conversation continue, and hear everything once.
func protocolKillWrapper(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "I make it.", Shell: "touch made.txt", Leave: true, Gate: gate}, modelserver.Turn{Text: "It is made."}, modelserver.Turn{Text: "Good night."})
	f.asked(0)
	f.killWrapper(run)
	close(gate)
	asks := tl.await(agency.NeedsInput)
	f.killWrapper(run)
	f.answers(run, "allow", "--prompt-id", asks.Request.ID)
	f.killWrapper(run)
	tl.await(agency.Waiting)
	f.rejects(agency.CodeInvalidState, "was answered by user", "answer", string(run.ID), "deny", "--prompt-id", asks.Request.ID)
	f.agency(nil, "send", string(run.ID), "good night")
	f.asked(2)
	f.killWrapper(run)
	f.until("rest after the message", func() bool {
		r := f.show(run)
		return r.Status == agency.Waiting && strings.Contains(f.output(binary, "logs", string(run.ID)), "● Good night.")
	})
	if turns := len(f.turns()); turns != 3 {
		t.Errorf("the model was asked %d times, want 3", turns)
	}
	if log := f.output(binary, "logs", string(run.ID)); strings.Count(log, "? 1:") != 1 || strings.Count(log, "> good night") != 1 {
		t.Errorf("log:\n%s", log)
	}
	f.agency(nil, "stop", string(run.ID))
	f.checkGone(run.ID)
}

// turns returns the requests of the conversation to the model.
func (f *fixture) turns() []modelserver.Request {
	var turns []modelserver.Request
	for _, r := range f.model.Requests() {
		if !r.Side && r.Subagent == "" && conversing(r.Path) {
			turns = append(turns, r)
		}
	}
	return turns
}

// conversing reports whether a path is that of a turn of the model.
func conversing(path string) bool {
	return slices.ContainsFunc([]string{"/messages", "/responses", "/completions", "GenerateContent"}, func(end string) bool { return strings.HasSuffix(path, end) })
}

// The daemon is killed, and then the wrapper too, while a request is open.
func protocolKillDaemon(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch, modelserver.Turn{Text: "It is made."})
	asks := tl.await(agency.NeedsInput)
	f.killDaemon()
	if err := syscall.Kill(f.wrapperOf(run).Wrapper.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.answers(run, "allow", "--prompt-id", asks.Request.ID)
	r, exit := f.wait(run)
	if r.Status != agency.Waiting || exit != agency.ExitNeedsUser || !f.made(run) {
		t.Errorf("got %s, exit %d of wait", r.Status, exit)
	}
}

// killDaemon kills the daemon.
func (f *fixture) killDaemon() {
	f.t.Helper()
	var status api.DaemonStatusResponse
	f.agency(&status, "daemon", "status")
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
}

// An agent that ends while no wrapper lives leaves its exit status.
func protocolAgentEnds(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch)
	tl.await(agency.NeedsInput)
	f.killDaemon() // or else it would replace the wrapper at once
	start := f.wrapperOf(run)
	for _, pid := range []int{start.Wrapper.PID, childOf(t, start.Runner.PID)} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	f.until("the exit status", func() bool {
		_, err := os.Stat(filepath.Join(run.RunDir, "attempts", "1", "held.json"))
		return err == nil && syscall.Kill(start.Runner.PID, 0) != nil // the holder has left it, and ended
	})
	r, _ := f.wait(run)
	if r.State != agency.Failed || r.Signal != "SIGKILL" {
		t.Errorf("got %s, signal %q, %s", r.State, r.Signal, r.Error)
	}
	f.checkGone(run.ID)
}

func childOf(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func protocolStop(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch)
	tl.await(agency.NeedsInput)
	f.killWrapper(run)
	var stopped api.RunResponse
	f.agency(&stopped, "stop", string(run.ID))
	if stopped.Run.State != agency.Killed {
		t.Errorf("got %s", stopped.Run.State)
	}
	f.checkGone(run.ID)
}

func protocolResumed(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "Good morning."}, modelserver.Turn{Text: "Again."})
	tl.await(agency.Waiting)
	before := f.show(run)
	var resumed api.RunResponse
	f.agency(&resumed, "resume", "--restart", string(run.ID))
	if resumed.Run.Mode != agency.ModeProtocol {
		t.Errorf("the mode is %s", resumed.Run.Mode)
	}
	f.asked(1)
	f.checkContinued(before)
}

// Gemini CLI does not always find its conversation again, and never when its files are gone. The run
// has failed then, in the agent's words.
func protocolLost(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "Good morning."})
	tl.await(agency.Waiting)
	f.agency(nil, "stop", string(run.ID))
	if err := os.RemoveAll(filepath.Join(f.dir, "home", ".gemini", "tmp")); err != nil {
		t.Fatal(err)
	}
	f.agency(nil, "resume", string(run.ID))
	f.until("the end of the run", func() bool { return f.show(run).State != agency.Running && f.show(run).State != agency.Queued })
	r := f.show(run)
	if r.State != agency.Failed || !strings.Contains(r.Error, "did not begin the conversation") {
		t.Errorf("got %s: %s", r.State, r.Error)
	}
	f.checkGone(run.ID)
}

func protocolRefused(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, nil)
	f.rejects(agency.CodeSpecInvalid, "does not speak a protocol of shell", "run", "--runner", "shell", "--mode", "protocol", "--prompt", "ls")
	f.rejects(agency.CodeSpecInvalid, "does not exist", "run", "--runner", a.runner, "--mode", "telepathy", "--prompt", "ls")
	f.rejects(agency.CodeSpecInvalid, "headless says true", "run", "--runner", a.runner, "--mode", "protocol", "--headless", "--prompt", "ls")
}
