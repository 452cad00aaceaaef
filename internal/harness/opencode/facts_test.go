package opencode_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
)

// TestFacts gives this agent's facts to the tests of all agents.
func TestFacts(t *testing.T) {
	t.Parallel()
	failed := func(status int, text string) []agency.Evidence {
		return harness.Hook("opencode", fmt.Appendf(nil,
			`[{"type":"session.error","properties":{"sessionID":"s","error":{"name":"APIError","data":{"message":%q,"statusCode":%d}}}}]`, text, status))
	}
	harnesstest.Check(t, harnesstest.Facts{
		Kind: "opencode",
		Boxes: map[string]string{
			"resting": "",
			"working": "",
			"prompt":  "Ask anything… \"Fix a TODO in the codebase\"",
			"typed":   "[Pasted ~3 lines]",
			"pasted":  "[Pasted ~30 lines]",
		},
		Answers: []harnesstest.Answer{
			harnesstest.On("permission", harnesstest.Permission("touch made.txt"), harnesstest.Allow, "\r"), // the cursor is on it
			harnesstest.On("permission", harnesstest.Permission("touch made.txt"), harnesstest.Deny, "\x1b"),
			harnesstest.On("permission", harnesstest.Permission("touch other.txt"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("permission", harnesstest.Question("touch made.txt"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("permission-last", harnesstest.Permission("touch made.txt"), harnesstest.Allow, "\x1b[D"), // the cursor is on another choice
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("blue"), "2"),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("red"), "1"),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("a warm green"), "3"),
			harnesstest.On("question", harnesstest.Question("Which shape?"), harnesstest.Words("red"), harnesstest.Hidden),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Deny, "\x1b"),
			harnesstest.On("question-own", harnesstest.Question("Which colour?"), harnesstest.Words("a warm green"), "a warm green"),
			harnesstest.On("question-typed", harnesstest.Question("Which colour?"), harnesstest.Words("a warm green"), "\r"),
			harnesstest.On("question-typed", harnesstest.Question("Which colour?"), harnesstest.Words("a warm green, please"), ""), // the rest follows
			harnesstest.On("question-typed", harnesstest.Question("Which colour?"), harnesstest.Words("brown"), harnesstest.Refused),
			harnesstest.On("resting", harnesstest.Permission("touch made.txt"), harnesstest.Deny, harnesstest.Hidden),
		},
		Role: func(c agency.Command) string {
			if !slices.ContainsFunc(c.Env, func(kv string) bool {
				return strings.Contains(kv, `"instructions":[".agency/INSTRUCTIONS.md","/run/attempts/1/system-prompt.md"]`)
			}) {
				return strings.Join(c.Env, "\n")
			}
			return string(c.Files["system-prompt.md"]) + agent.Protocol
		},
		Skips:      `"permission":"allow"`,
		SkipsByEnv: true,
		Errors: map[agency.ErrorClass][][]agency.Evidence{
			agency.ErrorAuth:       {failed(401, "no")},
			agency.ErrorRateLimit:  {failed(429, "slow down")},
			agency.ErrorBilling:    {failed(402, "pay")},
			agency.ErrorContext:    {failed(400, "prompt is too long: 9 tokens")},
			agency.ErrorOverloaded: {failed(529, "Overloaded")},
			agency.ErrorOther:      {failed(0, "hm")},
		},
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("┃ △ Permission required\n┃ $ ls\n┃ \x1b[48;5;9mAllow once\x1b[0m   Allow always   Reject   enter confirm\n┃", "ls")
	harnesstest.FuzzAnswer(f, "opencode", "\r\x1b[D")
}
