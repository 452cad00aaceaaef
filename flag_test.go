package agency_test

import (
	"strings"
	"testing"

	"agency"
)

// A reason is something that can be seen, and not without end.
func TestCheckFlagReason(t *testing.T) {
	t.Parallel()
	for reason, fine := range map[string]bool{
		"look": true, " ": false, "\u200b\x1b": false, strings.Repeat("ü", agency.FlagReasonLimit): true, strings.Repeat("ü", agency.FlagReasonLimit+1): false,
	} {
		if err := agency.CheckFlagReason(reason); (err == nil) != fine || err != nil && !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%.20q: %v", reason, err)
		}
	}
}
