package cli_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// Commands that follow continue with the next daemon: they show everything once, and also what
// changed while no daemon ran.
func TestDaemonGoesAway(t *testing.T) {
	t.Parallel()
	event := func(seq int64) string {
		return fmt.Sprintf("id: %d\ndata: {\"seq\":%d,\"type\":\"alert.opened\",\"run_id\":\"r_01\",\"run\":\"fix\",\"data\":{\"alert\":\"a_%d\"}}\n\n", seq, seq, seq)
	}
	for want, args := range map[string][]string{
		"7 8 9":    {"events", "-f", "--since", "6"},
		"a7 a8 a9": {"alerts", "-f"},
		"s0 s1 s2": {"ls", "--watch"},
	} {
		b := clitest.New(t)
		var streams, listed atomic.Int64
		listed.Store(-1)
		b.Serve(func(op string, _ []byte) (any, error) {
			n := streams.Load()
			switch op {
			case strings.TrimPrefix(api.EventsPath, "/v1/"):
				for args[0] == "ls" && listed.Load() != n && t.Context().Err() == nil { // the list shows the present state
					time.Sleep(time.Millisecond)
				}
				if streams.Add(1); n == 3 {
					return nil, agency.Errorf(agency.CodeRunNotFound, "enough")
				}
				return event(7 + n), nil // the stream is cut off here
			case api.ListEvents.Name:
				return api.ListEventsResponse{Events: []agency.Event{}, LastSeq: 6}, nil
			case api.ListAlerts.Name:
				resp := api.ListAlertsResponse{Alerts: []api.Alert{}}
				for i := range n {
					resp.Alerts = append(resp.Alerts, api.Alert{ID: fmt.Sprintf("a_%d", 7+i), RunName: fmt.Sprintf("a%d", 7+i), Kind: agency.AlertLost})
				}
				return resp, nil
			default:
				listed.Store(n)
				return api.ListRunsResponse{Runs: []api.Run{clitest.SomeRun("fix", agency.Working, fmt.Sprintf("s%d", n))}}, nil
			}
		})
		if exit := b.Run(args...); exit != agency.ExitNotFound {
			t.Errorf("%q: exit %d, err %q", args, exit, b.Err.String())
		}
		at := 0
		for word := range strings.FieldsSeq(want) {
			i := strings.Index(b.Out.String()[at:], word)
			if i < 0 || strings.Count(b.Out.String(), word+" ") > 1 {
				t.Fatalf("%q: %q is not there once:\n%s", args, word, b.Out.String())
			}
			at += i
		}
	}
}

func TestHelpOnNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		hint string
		exit int
	}{
		{[]string{"help", "shw"}, "did you mean: agency show", agency.ExitUsage},
		{[]string{"help", "photosynthesis"}, "agency --help", agency.ExitUsage},
		{[]string{"help", "daemon", "strat"}, "did you mean: agency daemon start", agency.ExitUsage},
		{[]string{"help", "daemon", "start"}, "", agency.ExitOK},
		{[]string{"help"}, "", agency.ExitOK},
	} {
		b := clitest.New(t)
		if exit := b.Run(test.args...); exit != test.exit || !strings.Contains(b.Err.String(), test.hint) {
			t.Errorf("%q: exit %d, %q", test.args, exit, b.Err.String())
		}
	}
}
