package gemini_test

import (
	"fmt"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
)

// TestFacts gives this agent's facts to the tests of all agents.
func TestFacts(t *testing.T) {
	t.Parallel()
	failed := func(text string) []agency.Evidence {
		return harness.Stream("gemini", fmt.Appendf(nil, `{"type":"result","status":"error","error":{"message":%q}}`, text))
	}
	harnesstest.Check(t, harnesstest.Facts{
		Kind: "gemini",
		Boxes: map[string]string{
			"resting": "Type your message or @path/to/file",
			"pasted":  "[Pasted Text: 30 lines]",
			"typed":   harnesstest.Message,
		},
		Answers: []harnesstest.Answer{
			harnesstest.On("permission", harnesstest.Permission("touch made.txt"), harnesstest.Allow, "1"),
			harnesstest.On("permission", harnesstest.Permission("touch made.txt"), harnesstest.Deny, "\x1b"),
			harnesstest.On("permission", harnesstest.Permission("touch"), harnesstest.Allow, harnesstest.Hidden), // the beginning of a command is another command
			harnesstest.On("permission", harnesstest.Question("touch made.txt"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("permission-write", harnesstest.Permission("Writing to made.txt"), harnesstest.Allow, "1"),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("blue"), "2"),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("red"), "\r"), // the cursor is on it
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Words("green"), "3"),
			harnesstest.On("question", harnesstest.Question("Which colour?"), harnesstest.Deny, "\x1b"),
			harnesstest.On("question-own", harnesstest.Question("Which colour?"), harnesstest.Words("green"), "green"),
			harnesstest.On("resting", harnesstest.Permission("touch made.txt"), harnesstest.Deny, harnesstest.Hidden),
		},
		Role:  func(c agency.Command) string { return c.Argv[len(c.Argv)-1] + agent.Protocol }, // the task names the instructions
		Skips: "--yolo",
		Errors: map[agency.ErrorClass][][]agency.Evidence{
			agency.ErrorAuth:       {failed("API key not valid")},
			agency.ErrorRateLimit:  {failed("429 RESOURCE_EXHAUSTED")},
			agency.ErrorBilling:    {failed("billing is not enabled")},
			agency.ErrorContext:    {failed("exceeds the maximum number of tokens")},
			agency.ErrorOverloaded: {failed("The model is overloaded")},
			agency.ErrorOther:      {failed("hm")},
		},
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("╭──\n│ ? Shell  ls\n│ ╭──\n│ │ ls │\n│ ╰──\n│ Allow execution of [Shell]?\n│ ● 1. Allow once\n│   2. No, suggest changes (esc)\n╰──", "ls")
	harnesstest.FuzzAnswer(f, "gemini", "123456789")
}
