package command_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"agency/internal/api"
	"agency/internal/cli/command"
)

// A client that follows waits for another daemon after an end that a user requested, and after no
// other end; it prints that once.
func TestFollowersWait(t *testing.T) {
	t.Parallel()
	stopping, stopped := api.Holder{PID: 4711, Doing: api.DoingStop, Locked: true}, api.Holder{PID: 4711, Doing: api.DoingStop}
	begun, runs := api.Holder{PID: 4712, Doing: api.DoingStart, Locked: true}, api.Holder{PID: 4712, Doing: api.DoingServe, Locked: true}
	restoring := api.Holder{PID: 4713, Doing: api.DoingRestore, Locked: true}
	for name, holders := range map[string][]api.Holder{
		"killed":        {{PID: 4711, Doing: api.DoingServe}},
		"stopped":       {stopping, stopped, stopped, begun, runs},
		"restored":      {stopped, restoring, begun, runs},
		"next one died": {stopped, begun, {PID: 4712, Doing: api.DoingStart}},
	} {
		var printed bytes.Buffer
		asked := 0
		d := &command.Deps{Output: command.NewOutput(io.Discard, &printed, nil), DaemonHolder: func(string) (api.Holder, error) {
			asked++
			return holders[asked-1], nil
		}}
		if err := d.AwaitNext(t.Context(), "/home"); err != nil || asked != len(holders) {
			t.Errorf("%s: %v after %d looks", name, err, asked)
		}
		if n := strings.Count(printed.String(), "the daemon was stopped"); n != min(1, len(holders)-1) {
			t.Errorf("%s: printed %d times: %q", name, n, printed.String())
		}
	}
}
