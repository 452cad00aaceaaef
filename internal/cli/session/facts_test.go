package session_test

import (
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// A script that asks whether a session is complete can tell an error from the answer "no".
func TestIsCompleteTellsErrors(t *testing.T) {
	t.Parallel()
	broken := agency.Errorf(agency.CodeDBError, "the disk is broken")
	for _, test := range []struct {
		status agency.SessionStatus
		err    error
		flag   string
		want   int
	}{
		{agency.SessionComplete, nil, "--is-complete", agency.ExitOK},
		{agency.SessionRunning, nil, "--is-complete", agency.ExitError},
		{agency.SessionRunning, broken, "--is-complete", agency.ExitUnknown},
		{agency.SessionRunning, broken, "--path", agency.ExitError},
	} {
		b := clitest.New(t)
		b.Serve(func(op string, _ []byte) (any, error) {
			if op == api.ShowSession.Name && test.err == nil {
				return clitest.SomeSession(test.status), nil
			}
			return api.Empty{}, test.err
		})
		if got := b.Run("session", "show", "auth", test.flag); got != test.want {
			t.Errorf("%s %s, %v: exit %d, want %d: %s", test.flag, test.status, test.err, got, test.want, b.Err.String())
		}
	}
}
