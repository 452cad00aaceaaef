package run_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// asks returns a run that asks for these permissions, and shows the first one.
func asks(commands ...string) api.ShowRunResponse {
	resp := api.ShowRunResponse{Run: clitest.SomeRun("fix-login", agency.NeedsInput, "")}
	for i, command := range commands {
		resp.Requests = append(resp.Requests, agency.Request{
			ID: "ask-" + command, Kind: agency.AsksPermission, Tool: "Bash", Text: command, At: time.UnixMilli(int64(i + 1)),
		})
	}
	resp.Run.Request, resp.Run.Summary = &resp.Requests[0], resp.Requests[0].Summary()
	return resp
}

// A run that asks nothing gets no answer, not even on a terminal: by the time that the user has
// typed one, its agent may ask for a permission.
func TestAnswerToNothing(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	d := b.Serve(clitest.Always(api.ShowRunResponse{Run: clitest.SomeRun("fix-login", agency.Working, "Reading")}, nil))
	user, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Close(), terminal.Close() })
	if _, err := user.WriteString("allow\n"); err != nil {
		t.Fatal(err)
	}
	b.App.In = terminal
	if seen := b.Screen(80, "answer", "fix-login"); seen != "fix-login is working and asks nothing: Reading\n" {
		t.Errorf("the user sees %q", seen)
	}
	if slices.Contains(d.Asked, api.AnswerRun.Name) {
		t.Errorf("the daemon got the answer %s", d.Last)
	}
}

// An answer is one to the request that the command showed. Of several, --prompt-id names it.
func TestAnswerToTheRequestShown(t *testing.T) {
	t.Parallel()
	spoken := asks("ls", "rm -r x")
	spoken.Run.Mode = agency.ModeProtocol
	for _, test := range []struct {
		run         api.ShowRunResponse
		flags       []string
		shows, sent string
	}{
		{asks("ls"), nil, "may it use Bash? ls", "ask-ls@1"},
		{asks("ls", "rm -r x"), nil, "may it use Bash? ls", "ask-ls@1"},
		{asks("ls", "rm -r x"), []string{"--prompt-id", "ask-rm -r x"}, "may it use Bash? rm -r x", "ask-rm -r x"},
		{spoken, nil, "", ""}, // the daemon refuses it and names both
	} {
		b := clitest.New(t)
		d := b.Serve(func(op string, _ []byte) (any, error) {
			if op == api.AnswerRun.Name {
				return api.AnswerRunResponse{Confirmed: true}, nil
			}
			return test.run, nil
		})
		if exit := b.Run(append([]string{"answer", "fix-login", "allow"}, test.flags...)...); exit != agency.ExitOK {
			t.Fatalf("exit %d: %s", exit, b.Err.String())
		}
		var req api.AnswerRunRequest
		if err := json.Unmarshal(d.Last, &req); err != nil {
			t.Fatal(err)
		}
		if shows := strings.TrimPrefix(strings.TrimSpace(b.Err.String()), "fix-login asks: "); shows != test.shows || req.PromptID != test.sent {
			t.Errorf("it shows %q and answers %q, want %q and %q", shows, req.PromptID, test.shows, test.sent)
		}
	}
}
