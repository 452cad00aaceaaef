package inspect_test

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
	"agency/internal/cli/clitest"
)

// asked returns the request of one operation, as a map.
func asked(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var req map[string]any
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	return req
}

// A waiting client names runs by their ids: it may ask several daemons, and a name can mean another
// run by then.
func TestWaitByID(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	ids := map[string]agency.RunID{"fix-": "r_01", "test": "r_02"}
	b.Serve(func(op string, body []byte) (any, error) {
		req := asked(t, body)
		switch op {
		case api.ListRuns.Name:
			r := clitest.SomeRun("", agency.Working, "")
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
			if req["session"] != "latest" || req["dir"] != b.Home {
				t.Errorf("looks for %v", req)
			}
			return clitest.SomeSession(agency.SessionRunning, clitest.SomeAgent("001", 1, agency.AgentRunning)), nil
		default:
			if req["session"] != "20260201-143022-abc12345" {
				t.Errorf("waits for session %v", req["session"])
			}
			return clitest.SomeSession(agency.SessionComplete, clitest.SomeAgent("001", 1, agency.AgentComplete)), nil
		}
	})
	if exit := b.Run("wait", "fix-", "test"); exit != agency.ExitOK {
		t.Errorf("exit %d: %s", exit, b.Err.String())
	}
	if exit := b.Run("session", "wait", "latest"); exit != agency.ExitOK {
		t.Errorf("session: exit %d: %s", exit, b.Err.String())
	}
	if exit := b.Run("wait", ""); exit != agency.ExitNotFound {
		t.Errorf("no name: exit %d: %s", exit, b.Err.String())
	}
}

// A timeout of less than a millisecond is short, and not unlimited.
func TestShortWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		op   string
		args []string
		key  string
		data any
	}{
		{api.WaitRuns.Name, []string{"wait", "x", "--timeout"}, "timeout_ms", api.WaitRunsResponse{Runs: []api.Run{}, TimedOut: true}},
		{api.WaitSession.Name, []string{"session", "wait", "latest", "--timeout"}, "timeout_ms", clitest.SomeSession(agency.SessionRunning, clitest.SomeAgent("001", 1, agency.AgentRunning))},
		{api.PollMessages.Name, []string{"messages", "poll", "--wait"}, "wait_ms", api.MessagesResponse{Messages: []agency.Message{}}},
	} {
		for given, want := range map[string]float64{"1us": 1, "1ns": 1, "1ms": 1, "1500us": 1, "2s": 2000, "0": 0} {
			b := clitest.New(t)
			d := b.Serve(clitest.Always(test.data, nil))
			b.Run(append(test.args, given)...)
			if op := d.Asked[len(d.Asked)-1]; op != test.op {
				t.Fatalf("%s: asked %q: %s", given, d.Asked, b.Err.String())
			}
			got := asked(t, d.Last)[test.key]
			if got == nil {
				got = 0.0 // requests omit 0
			}
			if got != want {
				t.Errorf("%s %s: %s is %v, want %v", strings.Join(test.args, " "), given, test.key, got, want)
			}
		}
	}
}

// stopAtOutput cancels a context as soon as something is written.
type stopAtOutput struct {
	io.Writer
	stop context.CancelFunc
}

func (s stopAtOutput) Write(p []byte) (int, error) {
	defer s.stop()
	return s.Writer.Write(p)
}

// Ctrl-C is a normal end of a command that follows for ever; a log that it cut off is incomplete.
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
			return clitest.SomeSession(agency.SessionComplete, clitest.SomeAgent("001", 1, agency.AgentComplete)), nil
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
		b := clitest.New(t)
		b.Serve(answer)
		ctx, cancel := context.WithCancel(t.Context())
		b.App.Out = stopAtOutput{&b.Out, cancel}
		if got := b.App.Main(ctx, strings.Fields(line)); got != want || !strings.Contains(b.Out.String(), "a part") {
			t.Errorf("%s: exit %d, want %d; %q, %q", line, got, want, b.Out.String(), b.Err.String())
		}
		cancel()
	}
}
