package claude_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// The usage of an answer is, for each kind of token, the largest number of its lines, also when the
// result of a tool is between them.
func TestClaudeUsageGrows(t *testing.T) {
	t.Parallel()
	part := func(id, model string, output int) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":%q,"content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":50,`+
			`"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":%d}}}`, id, model, output)
	}
	r := newReplay(t, "exit-slash.hooks.jsonl")
	r.do("hook")
	r.do("says " + part("msg_1", "opus", 1) + "\n" + part("msg_1", "opus", 159))
	r.do("says " + userLine)
	r.do("says " + part("msg_1", "opus", 159))
	r.do("says " + part("msg_2", "haiku", 5) + "\n" + part("msg_1", "opus", 1) + "\n" + part("msg_2", "haiku", 8))
	want := agency.NewUsage(
		agency.ModelUsage{Model: "haiku", Input: 3, CacheRead: 50, CacheWrite5m: 10, CacheWrite1h: 20, Output: 8},
		agency.ModelUsage{Model: "opus", Input: 3, CacheRead: 50, CacheWrite5m: 10, CacheWrite1h: 20, Output: 159},
	)
	want.Estimated = true
	if diff := cmp.Diff(*want, r.agentState.Usage); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if *want.InputTokens != 166 || *want.CachedTokens != 100 || *want.OutputTokens != 167 {
		t.Errorf("got the totals %d, %d, %d", *want.InputTokens, *want.CachedTokens, *want.OutputTokens)
	}
}
