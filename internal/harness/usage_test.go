package harness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
	"agency/internal/status"
)

// These are the tokens that agents count when they continue a conversation: two attempts each, as
// the programs reported them.
func TestUsageOverAttempts(t *testing.T) {
	t.Parallel()
	claude := func(turn, total, output int, cost float64) []byte {
		return fmt.Appendf(nil, `{"type":"result","subtype":"success","total_cost_usd":%v,"usage":{"input_tokens":%d},`+
			`"modelUsage":{"claude-opus-5-5":{"inputTokens":%d,"outputTokens":%d}}}`, cost, turn, total, output)
	}
	begun := []byte(`{"type":"system","subtype":"init","session_id":"b116d808","model":"claude-opus-5-5"}`)
	step := func(input, output int) []byte {
		return fmt.Appendf(nil, `{"type":"step_finish","sessionID":"ses_1","part":{"type":"step-finish","reason":"stop",`+
			`"tokens":{"input":%d,"output":%d,"cache":{"read":0,"write":0}}}}`, input, output)
	}
	session := func(input, output int) []byte {
		return fmt.Appendf(nil, `[{"type":"session.updated","properties":{"sessionID":"ses_1","info":{"id":"ses_1",`+
			`"tokens":{"input":%d,"output":%d,"cache":{"read":0,"write":0}}}}}]`, input, output)
	}
	opened := []byte(`{"type":"step_start","sessionID":"ses_1"}`)
	used := func(input, output int64) agency.Usage {
		return agency.Usage{InputTokens: &input, CachedTokens: new(int64(0)), OutputTokens: &output}
	}
	dear := used(300, 47)
	dear.CostUSD, dear.Models = new(0.00214), []agency.ModelUsage{{Model: "claude-opus-5-5", Input: 300, Output: 47}}
	for name, tt := range map[string]struct {
		kind     agency.RunnerKind
		read     func(agency.RunnerKind, []byte) []agency.Evidence
		attempts [2][][]byte
		want     agency.Usage
	}{
		"codex": {
			"codex", harness.Stream,
			[2][][]byte{harnesstest.Lines(t, "codex/testdata/exec-kill9.stream.jsonl"), harnesstest.Lines(t, "codex/testdata/exec-resume-after-kill9.stream.jsonl")},
			used(300, 31),
		},
		"claude": {
			"claude_code", harness.Stream,
			[2][][]byte{{begun, claude(200, 200, 41, 0.00162)}, {begun, claude(100, 300, 47, 0.00214)}},
			dear,
		},
		"opencode in a terminal": {"opencode", harness.Hook, [2][][]byte{{session(100, 74), session(200, 80)}, {session(200, 80), session(300, 86)}}, used(300, 86)},
		"opencode without one":   {"opencode", harness.Stream, [2][][]byte{{opened, step(100, 74), step(100, 6)}, {opened, step(100, 6)}}, used(300, 86)},
	} {
		attempts := make([]agency.Attempt, 2)
		for i := range attempts {
			var f harnesstest.Folded
			for _, line := range tt.attempts[i] {
				f.Fold(tt.read(tt.kind, line), time.Now())
			}
			attempts[i].AgentState = f.AgentState
		}
		if diff := cmp.Diff(tt.want, status.UsageOf(attempts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
