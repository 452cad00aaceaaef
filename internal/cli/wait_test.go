package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
)

// asked is what a daemon was asked with one operation, by keys.
func asked(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var req map[string]any
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	return req
}

// Whoever waits names by their ids what it waits for: it may ask several daemons, and a name can mean something else meanwhile.
func TestWaitByID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := map[string]agency.RunID{"fix-": "r_01", "test": "r_02"}
	b.serve(func(op string, body []byte) (any, error) {
		req := asked(t, body)
		switch op {
		case api.ListRuns.Name:
			r := someRun("", agency.Working, "")
			r.ID = ids[req["run"].(string)]
			if req["removed"] != true {
				t.Error("a removed run is not found")
			}
			return api.ListRunsResponse{Runs: []api.Run{r}}, nil
		case api.WaitRuns.Name:
			if got := req["runs"]; !reflect.DeepEqual(got, []any{"r_01", "r_02"}) {
				t.Errorf("waits for %v", got)
			}
			return api.WaitRunsResponse{Runs: []api.Run{}}, nil
		case api.ShowSession.Name:
			if req["session"] != "latest" || req["dir"] != b.home {
				t.Errorf("looks for %v", req)
			}
			return someSession(agency.SessionRunning, someAgent("001", 1, agency.AgentRunning)), nil
		default:
			if req["session"] != "20260201-143022-abc12345" {
				t.Errorf("waits for session %v", req["session"])
			}
			return someSession(agency.SessionComplete, someAgent("001", 1, agency.AgentComplete)), nil
		}
	})
	if exit := b.run("wait", "fix-", "test"); exit != agency.ExitOK {
		t.Errorf("exit %d: %s", exit, b.err.String())
	}
	if exit := b.run("session", "wait", "latest"); exit != agency.ExitOK {
		t.Errorf("session: exit %d: %s", exit, b.err.String())
	}
	if exit := b.run("wait", ""); exit != agency.ExitNotFound {
		t.Errorf("no name: exit %d: %s", exit, b.err.String())
	}
}

// A time of less than a millisecond is short, and not for ever.
func TestShortWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		op   string
		args []string
		key  string
		data any
	}{
		{api.WaitRuns.Name, []string{"wait", "x", "--timeout"}, "timeout_ms", api.WaitRunsResponse{Runs: []api.Run{}, TimedOut: true}},
		{api.WaitSession.Name, []string{"session", "wait", "latest", "--timeout"}, "timeout_ms", someSession(agency.SessionRunning, someAgent("001", 1, agency.AgentRunning))},
		{api.PollMessages.Name, []string{"messages", "poll", "--wait"}, "wait_ms", api.MessagesResponse{Messages: []agency.Message{}}},
	} {
		for given, want := range map[string]float64{"1us": 1, "1ns": 1, "1ms": 1, "1500us": 1, "2s": 2000, "0": 0} {
			b := newBench(t)
			d := b.serve(always(test.data, nil))
			b.run(append(test.args, given)...)
			if op := d.asked[len(d.asked)-1]; op != test.op {
				t.Fatalf("%s: asked %q: %s", given, d.asked, b.err.String())
			}
			if got := asked(t, d.last)[test.key]; got != want {
				t.Errorf("%s %s: %s is %v, want %v", strings.Join(test.args, " "), given, test.key, got, want)
			}
		}
	}
}

// stopAtOutput ends a context as soon as something is written.
type stopAtOutput struct {
	io.Writer
	stop context.CancelFunc
}

func (s stopAtOutput) Write(p []byte) (int, error) {
	defer s.stop()
	return s.Writer.Write(p)
}

// Ctrl-C is a good end of what would go on for ever; a log that it cut off is no whole log.
func TestLogsCutOff(t *testing.T) {
	t.Parallel()
	part := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a part\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	answer := func(op string, _ []byte) (any, error) {
		switch op {
		case api.ListEvents.Name:
			return api.ListEventsResponse{Events: []agency.Event{}}, nil
		case api.ShowSession.Name:
			return someSession(agency.SessionComplete, someAgent("001", 1, agency.AgentComplete)), nil
		default:
			return part, nil
		}
	}
	for line, want := range map[string]int{
		"logs x":                     agency.ExitInterrupted,
		"logs x -f":                  agency.ExitOK,
		"session logs latest":        agency.ExitInterrupted,
		"session logs latest -f":     agency.ExitOK,
		"session logs latest 001":    agency.ExitInterrupted,
		"session logs latest 001 -f": agency.ExitOK,
	} {
		b := newBench(t)
		b.serve(answer)
		ctx, cancel := context.WithCancel(t.Context())
		b.app.Out = stopAtOutput{&b.out, cancel}
		if got := b.app.Main(ctx, strings.Fields(line)); got != want || !strings.Contains(b.out.String(), "a part") {
			t.Errorf("%s: exit %d, want %d; %q, %q", line, got, want, b.out.String(), b.err.String())
		}
		cancel()
	}
}

// Ctrl-C while the last lost run is resumed is no failure of that run.
func TestResumeLostCutOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := someRun("fix-login", agency.LabelFailed, "")
	lost.ErrorCode = agency.CodeRunnerDisappeared
	b.serve(func(op string, _ []byte) (any, error) {
		if op == api.ListRuns.Name {
			return api.ListRunsResponse{Runs: []api.Run{lost}}, nil
		}
		cancel()
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), nil
	})
	if got := b.app.Main(ctx, []string{"resume", "--all-lost", "--yes"}); got != agency.ExitInterrupted || b.out.Len()+b.err.Len() > 0 {
		t.Errorf("exit %d, %q, %q", got, b.out.String(), b.err.String())
	}
}
