package codex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// TestFacts gives this agent's facts to the tests of all agents.
func TestFacts(t *testing.T) {
	t.Parallel()
	failed := func(text string) []agency.Evidence {
		return harness.Stream("codex", fmt.Appendf(nil, `{"type":"turn.failed","error":{"message":%q}}`, text))
	}
	harnesstest.Check(t, harnesstest.Facts{
		Kind: "codex",
		Boxes: map[string]string{
			"prompt":  "Ask Codex to do anything",
			"resting": "Ask Codex to do anything",
			"working": "Ask Codex to do anything",
			"pasted":  "[Pasted Content 1219 chars]",
			"typed":   harnesstest.Message,
		},
		Answers: []harnesstest.Answer{
			harnesstest.On("permission", harnesstest.Permission("mkdir -p made-by-stub && date > made-by-stub/stamp.txt"), harnesstest.Allow, "y"),
			harnesstest.On("permission", harnesstest.Permission("mkdir -p made-by-stub && date > made-by-stub/stamp.txt"), harnesstest.Deny, "\x1b"),
			harnesstest.On("permission", harnesstest.Permission("git push"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("write", harnesstest.Permission("*** Begin Patch\n*** Add File: stub-file.txt\n+x\n*** End Patch"), harnesstest.Allow, "y"),
			harnesstest.On("question", harnesstest.Question("Which colour should the stub use?"), harnesstest.Words("Blue"), "2"),
			harnesstest.On("question", harnesstest.Question("Which colour should the stub use?"), harnesstest.Words("green"), harnesstest.Refused),
			harnesstest.On("hooks", harnesstest.Permission("x"), harnesstest.Allow, harnesstest.Hidden),
		},
		Role: func(c agency.Command) string {
			i := slices.IndexFunc(c.Argv, func(arg string) bool { return strings.HasPrefix(arg, "developer_instructions=") })
			return strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(c.Argv[i])
		},
		Skips: "--dangerously-bypass-approvals-and-sandbox",
		Errors: map[agency.ErrorClass][][]agency.Evidence{
			agency.ErrorAuth:       {failed("unexpected status 401 Unauthorized")},
			agency.ErrorRateLimit:  {failed("unexpected status 429 Too Many Requests")},
			agency.ErrorBilling:    {failed("insufficient_quota")},
			agency.ErrorContext:    {failed("your input exceeds the context window")},
			agency.ErrorOverloaded: {failed("unexpected status 503 Service Unavailable")},
			agency.ErrorOther:      {failed("hm")},
		},
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("$ ls\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel", "ls")
	harnesstest.FuzzAnswer(f, "codex", "y")
}
