package copilot_test

import (
	"fmt"
	"path/filepath"
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
	const write, colour = "/home/dev/work/stub-file.txt", "Which colour?"
	failed := func(name string, status int, text string) []agency.Evidence {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		harnesstest.AppendTo(t, path, fmt.Sprintf(`{"type":"session.error","data":{"errorType":%q,"statusCode":%d,"message":%q}}`+"\n", name, status, text))
		facts := harness.ReadFile("copilot", path, &agency.AgentState{})
		return facts[:len(facts)-1] // the last piece is the position in the file
	}
	harnesstest.Check(t, harnesstest.Facts{
		Kind: "copilot",
		Boxes: map[string]string{
			"working": "",
			"resting": "",
			"pasted":  "[Paste #1 - 30 lines]",
			"typed":   harnesstest.Message,
		},
		Answers: []harnesstest.Answer{
			harnesstest.On("permission-write", harnesstest.Permission(write), harnesstest.Allow, "1"),
			harnesstest.On("permission-write", harnesstest.Permission(write), harnesstest.Deny, "\x1b"),
			harnesstest.On("permission-write", harnesstest.Permission("/home/dev/work/other.txt"), harnesstest.Allow, harnesstest.Hidden), // another request's dialog
			harnesstest.On("permission-write", harnesstest.Question(write), harnesstest.Words("x"), harnesstest.Hidden),
			harnesstest.On("path", harnesstest.Permission("/home/dev/elsewhere.txt"), harnesstest.Allow, "1"), // the cursor is on more than that
			harnesstest.On("question", harnesstest.Question(colour), harnesstest.Words("red"), "\r"),          // the cursor is on it
			harnesstest.On("question", harnesstest.Question(colour), harnesstest.Words("Blue"), "\x1b[B"),
			harnesstest.On("question", harnesstest.Question(colour), harnesstest.Words("a warm green"), "\x1b[B"), // on the way to the last
			harnesstest.On("question", harnesstest.Question(colour), harnesstest.Deny, "\x1b"),
			harnesstest.On("question", harnesstest.Question("How many?"), harnesstest.Words("red"), harnesstest.Hidden),
			harnesstest.On("question-other", harnesstest.Question(colour), harnesstest.Words("a warm green"), "a warm green"),
			harnesstest.On("question-other", harnesstest.Question(colour), harnesstest.Words("Red"), "\x1b[A"),
			harnesstest.On("question-own", harnesstest.Question(colour), harnesstest.Words("a warm green"), ""), // the rest follows
			harnesstest.On("question-own", harnesstest.Question(colour), harnesstest.Words("a warm"), "\r"),
			harnesstest.On("question-own", harnesstest.Question(colour), harnesstest.Words("a"), ""), // while it is being drawn
			harnesstest.On("question-own", harnesstest.Question(colour), harnesstest.Words("brown"), harnesstest.Refused),
			harnesstest.On("question-two", harnesstest.Question("Colour and size?"), harnesstest.Words("red"), harnesstest.Refused),
			harnesstest.On("question-two", harnesstest.Question("Colour and size?"), harnesstest.Deny, "\x1b"),
			harnesstest.On("form", harnesstest.Question(colour), harnesstest.Words("a warm green"), "a warm green"),
			harnesstest.On("trust", harnesstest.Permission("/home/dev/work"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("in-use", harnesstest.Permission("Session in use"), harnesstest.Allow, harnesstest.Hidden),
			harnesstest.On("resting", harnesstest.Permission(write), harnesstest.Deny, harnesstest.Hidden),
		},
		Role: func(c agency.Command) string {
			if !slices.Contains(c.Env, "COPILOT_CUSTOM_INSTRUCTIONS_DIRS=/run/attempts/1") {
				return strings.Join(c.Env, "\n")
			}
			return string(c.Files["agency.instructions.md"])
		},
		Skips: "--allow-all",
		Errors: map[agency.ErrorClass][][]agency.Evidence{
			agency.ErrorAuth:       {failed("authentication", 401, "no")},
			agency.ErrorRateLimit:  {failed("rate_limit", 429, "slow down")},
			agency.ErrorBilling:    {failed("query", 402, "pay")},
			agency.ErrorContext:    {failed("query", 400, "prompt is too long: 9 tokens")},
			agency.ErrorOverloaded: {failed("query", 529, "Overloaded")},
			agency.ErrorOther:      {failed("query", 0, "hm")},
		},
	})
}
