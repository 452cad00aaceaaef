package harness_test

import (
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

func TestTwoSystemPrompts(t *testing.T) {
	t.Parallel()
	_, err := harness.Build(agency.CommandRequest{
		Runner: agency.Runner{Kind: "claude_code", Name: "claude_code", Args: []string{"--system-prompt=x"}}, Exec: harnesstest.Program(t), SystemPrompt: "You watch the workers.",
	})
	if !agency.IsCode(err, agency.CodeSpecInvalid) {
		t.Errorf("two system prompts: %v", err)
	}
}
