package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/status"
)

func TestUsageOf(t *testing.T) {
	t.Parallel()
	used := func(input, output int64) agency.Usage {
		return agency.Usage{InputTokens: &input, OutputTokens: &output}
	}
	own := func(conversation string, u agency.Usage) agency.Attempt {
		return agency.Attempt{AgentState: agency.AgentState{Conversation: conversation, Usage: u}}
	}
	whole := func(conversation string, u agency.Usage) agency.Attempt {
		a := own(conversation, u)
		a.AgentState.UsageOf = conversation
		return a
	}
	silent := own("a", agency.Usage{})
	for name, tt := range map[string]struct {
		attempts []agency.Attempt
		want     agency.Usage
	}{
		"nothing is known":                    {[]agency.Attempt{silent, silent}, agency.Usage{}},
		"each attempt for itself":             {[]agency.Attempt{own("a", used(200, 20)), own("a", used(100, 5))}, used(300, 25)},
		"a conversation that goes on":         {[]agency.Attempt{whole("a", used(200, 20)), whole("a", used(300, 25))}, used(300, 25)},
		"and tells nothing in the end":        {[]agency.Attempt{whole("a", used(200, 20)), silent}, used(200, 20)},
		"another one is begun":                {[]agency.Attempt{whole("a", used(200, 20)), whole("b", used(70, 7)), whole("b", used(90, 9))}, used(290, 29)},
		"and the first one taken up again":    {[]agency.Attempt{whole("a", used(200, 20)), whole("b", used(70, 7)), whole("a", used(300, 25))}, used(370, 32)},
		"the newest does not tell everything": {[]agency.Attempt{whole("a", used(200, 20)), whole("a", agency.Usage{InputTokens: new(int64(300))})}, used(300, 20)},
		"one of its attempts alone":           {[]agency.Attempt{own("a", used(200, 20)), whole("a", used(300, 25)), own("a", used(10, 1))}, used(310, 26)},
		"no conversation is known":            {[]agency.Attempt{whole("", used(200, 20)), whole("", used(300, 25))}, used(500, 45)},
	} {
		if diff := cmp.Diff(tt.want, status.UsageOf(tt.attempts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
