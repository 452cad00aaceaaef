package claude_test

import (
	"fmt"
	"slices"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// TestFacts gives this agent's facts to the tests of all agents.
func TestFacts(t *testing.T) {
	t.Parallel()
	const shell = "mkdir -p made && date > made/stamp.txt"
	failed := func(name, text string) []agency.Evidence {
		return harness.Hook("claude_code", fmt.Appendf(nil, `{"hook_event_name":"StopFailure","error":%q,"last_assistant_message":%q}`, name, text))
	}
	harnesstest.Check(t, harnesstest.Facts{
		Kind: "claude_code",
		Boxes: map[string]string{
			"resting": "",
			"working": "",
			"pasted":  "[Pasted text #1 +29 lines]",
			"typed":   harnesstest.Message,
		},
		Answers: []harnesstest.Answer{
			harnesstest.On("permission", harnesstest.Permission(shell), harnesstest.Allow, "1"),
			harnesstest.On("permission", harnesstest.Permission(shell), harnesstest.Deny, "\x1b"),
			harnesstest.On("permission", harnesstest.Permission("rm -rf /"), harnesstest.Allow, harnesstest.Hidden), // another request's dialog
			harnesstest.On("permission", harnesstest.Question("Which colour?"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("permission-2.1.197", harnesstest.Permission(shell), harnesstest.Allow, "1"),
			harnesstest.On("permission-write", harnesstest.Permission("/home/dev/work/greeting.txt"), harnesstest.Allow, "1"),
			harnesstest.On("permission-write", harnesstest.Permission("/home/dev/work/other.txt"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("question", harnesstest.Question("Which colour should it use?"), harnesstest.Words("blue"), "2"),
			harnesstest.On("question", harnesstest.Question("Which colour should it use?"), harnesstest.Words("Red"), "\r"), // the cursor is on it
			harnesstest.On("question", harnesstest.Question("Which colour should it use?"), harnesstest.Words("green"), "3"),
			harnesstest.On("question", harnesstest.Question("Which colour should it use?"), harnesstest.Deny, "\x1b"),
			harnesstest.On("question", harnesstest.Question("How many?"), harnesstest.Words("blue"), harnesstest.Hidden),
			harnesstest.On("trust", harnesstest.Permission("x"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("working", harnesstest.Permission(shell), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("resting", harnesstest.Permission(shell), harnesstest.Deny, harnesstest.Hidden),
		},
		Role: func(c agency.Command) string {
			if i := slices.Index(c.Argv, "--append-system-prompt-file"); i < 0 || c.Argv[i+1] != "/run/attempts/1/system-prompt.md" {
				return "not in the arguments"
			}
			return string(c.Files["system-prompt.md"])
		},
		Skips: "--dangerously-skip-permissions",
		Errors: map[agency.ErrorClass][][]agency.Evidence{
			agency.ErrorAuth:       {failed("authentication_failed", "Invalid API key")},
			agency.ErrorRateLimit:  {failed("rate_limit", "")},
			agency.ErrorBilling:    {failed("billing_error", "Credit balance is too low")},
			agency.ErrorContext:    {failed("invalid_request", "Prompt is too long")},
			agency.ErrorOverloaded: {failed("overloaded", ""), failed("server_error", "529 Overloaded")},
			agency.ErrorOther:      {failed("something_new", "")},
		},
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("───\nls\nDo you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "ls")
	harnesstest.FuzzAnswer(f, "claude_code", "123456789")
}
