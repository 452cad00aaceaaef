package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/spool"
	"agency/test/conformance/modelserver"
)

// signal sends a signal to all processes that a run started, except agency's own.
func (f *fixture) signal(run api.Run, sig syscall.Signal) {
	f.t.Helper()
	found := 0
	for _, process := range f.processes(run.ID) {
		dir, argv, _ := strings.Cut(process, " ")
		program, _, _ := strings.Cut(argv, `\x00`)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || strings.Contains(program, f.binary) {
			continue
		}
		if err := syscall.Kill(pid, sig); err == nil {
			found++
		}
	}
	if found == 0 {
		f.t.Fatalf("no process of %s: %q", run.ID, f.processes(run.ID))
	}
}

// The answer of send about an agent that was stopped during the typing is true: a confirmed message
// is a prompt, and for any other one the answer contains what is in the input box.
func TestSendToAStoppedAgent(t *testing.T) {
	t.Parallel()
	stops := []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}
	for _, runner := range runners() {
		for _, when := range []string{"before the text", "before Enter"} {
			t.Run(runner+" "+when, func(t *testing.T) {
				t.Parallel()
				binary, a := installed(t, runner)
				scenario, gates := modelserver.Scenario{{Text: "Good morning."}}, []chan struct{}{}
				for range stops {
					gates = append(gates, make(chan struct{}))
					scenario = append(scenario, modelserver.Turn{Text: "Heard.", Gate: gates[len(gates)-1]})
				}
				f := newFixture(t, binary, a, scenario)
				run, tl := f.begin(a)
				tl.await(agency.Waiting)
				for i, stop := range stops {
					message := fmt.Sprintf("message %d, after a stop of %s", i+1, stop)
					if sent := f.sendStopped(run, message, stop, when == "before Enter"); !sent.Confirmed {
						// A busy machine may not finish in time; then the message is where send saw
						// it, or on its way.
						if !sent.Delivered || sent.Composer != "" && !strings.Contains(sent.Composer, message) {
							t.Errorf("%s: %+v", stop, sent)
						}
						if sent.Composer != "" {
							return
						}
					}
					f.until("a request with "+message, func() bool {
						return strings.Count(f.heardLast(), message) == 1
					})
					tl.await(agency.Working)
					close(gates[i])
					tl.await(agency.Waiting)
				}
			})
		}
	}
}

// heardLast returns what the user said until the newest request.
func (f *fixture) heardLast() string {
	heard := ""
	for _, r := range f.model.Requests() {
		if !r.Side {
			heard = r.Heard
		}
	}
	return heard
}

// sendStopped sends a message while the agent is stopped for a while: from before the typing, or
// from when the text is in the input box, before Enter. An agent that was stopped while it drew may
// show no input box; then nothing is typed, and the message is sent again.
func (f *fixture) sendStopped(run api.Run, message string, stop time.Duration, shown bool) api.SendInputResponse {
	f.t.Helper()
	var sent api.Envelope
	var response api.SendInputResponse
	f.until("a message that is typed", func() bool {
		sent = api.Envelope{Data: &response}
		done := make(chan struct{})
		if !shown {
			f.signal(run, syscall.SIGSTOP)
		}
		go func() {
			defer close(done)
			out, _ := f.command(f.binary, "--json", "send", string(run.ID), message)
			_ = json.Unmarshal([]byte(out), &sent)
		}()
		if shown {
			f.shown(run, message)
			f.signal(run, syscall.SIGSTOP)
		}
		time.Sleep(stop) // the test is about this time
		f.signal(run, syscall.SIGCONT)
		<-done
		return sent.Error == nil || !strings.Contains(sent.Error.Message, "shows no input box")
	})
	if err := sent.Err(); err != nil {
		f.t.Fatal(err)
	}
	return response
}

// A message for an agent at work is confirmed when it has left the input box: the agent queues it.
func TestSendToAnAgentAtWork(t *testing.T) {
	t.Parallel()
	for _, runner := range runners() {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, runner)
			gate := make(chan struct{})
			f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning.", Gate: gate}, {Text: "One."}})
			run := f.start(a)
			tl := f.watch(run)
			f.asked(0)
			for _, message := range []string{"and then this", strings.Repeat("a line of many\n", 30) + "the end"} {
				var sent api.SendInputResponse
				f.agency(&sent, "send", string(run.ID), message)
				if !sent.Confirmed {
					t.Errorf("%.20s: %+v", message, sent)
				}
			}
			close(gate)
			f.until("a request with both", func() bool {
				heard := f.heardLast()
				return strings.Contains(heard, "and then this") && strings.Contains(heard, "the end")
			})
			tl.await(agency.Waiting)
		})
	}
}

// Nothing is typed into a dialog, even when all evidence claims that there is none: here the record
// is given its answer.
func TestSendIntoADialog(t *testing.T) {
	t.Parallel()
	for _, runner := range runners() {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, runner)
			f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I run it.", Shell: "touch made.txt", Leave: true}, {Text: "It ran."}})
			run := f.start(a, a.asks...)
			tl := f.watch(run)
			tl.await(agency.NeedsInput)
			var asked *agency.Request
			f.until("a request that says what it is for", func() bool {
				asked = f.show(run).Request
				return asked != nil && asked.ID != ""
			})
			f.shown(run, "touch made.txt")
			events := filepath.Join(run.RunDir, "attempts", "1", agency.EventsFile)
			refused := ""
			f.until("a refusal for what the terminal shows", func() bool {
				if now := f.show(run); now.Status != agency.Working {
					f.claimAnswered(events, asked, now.Request)
				}
				// The agent's own report of the dialog may come after the claim: then the record is
				// the reason of this refusal, and the claim is made again.
				out, err := f.command(binary, "send", string(run.ID), "go on")
				if err == nil {
					t.Fatalf("sent: %s", out)
				}
				refused = err.Error()
				return strings.Contains(refused, "shows a dialog")
			})
			if !strings.Contains(refused, "agency attach") {
				t.Errorf("no way out in %s", refused)
			}
			if _, err := os.Stat(filepath.Join(run.Worktree, "made.txt")); err == nil {
				t.Error("the command ran without leave")
			}
			for _, r := range f.model.Requests() {
				if !r.Side && r.Turn > 0 {
					t.Error("the dialog was answered")
				}
			}
		})
	}
}

// claimAnswered claims in the evidence of an agent that the request of its hook has its answer, and
// that the agent works on if something else reports the dialog too.
func (f *fixture) claimAnswered(events string, asked, now *agency.Request) {
	f.t.Helper()
	evidence := []agency.Evidence{{At: time.Now(), Source: agency.FromHook, Signal: agency.SignalAnswered, ID: asked.ID, Subagent: asked.Subagent, Event: "scripted"}}
	if now != nil && now.ID != asked.ID { // the agent's session file reports the dialog some time after the hook
		evidence = append(evidence, agency.Evidence{At: time.Now(), Source: agency.FromSession, Signal: agency.SignalBusy, Event: "scripted"})
	}
	if err := spool.Append(events, evidence...); err != nil {
		f.t.Fatal(err)
	}
}
