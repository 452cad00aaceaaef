package agency_test

import (
	"strings"
	"testing"

	"agency"
)

func TestParseLabel(t *testing.T) {
	t.Parallel()
	for _, l := range agency.Labels() {
		for _, text := range []string{
			string(l), strings.ReplaceAll(string(l), " ", "-"), strings.ReplaceAll(string(l), " ", "_"), strings.ToUpper(string(l)),
		} {
			if got, err := agency.ParseLabel(text); got != l || err != nil {
				t.Errorf("ParseLabel(%q) = %q, %v", text, got, err)
			}
		}
	}
	if got, err := agency.ParseLabel("stopped"); got != agency.LabelKilled || err != nil {
		t.Errorf("stopped is %q, %v", got, err)
	}
	for _, text := range []string{"", "need input", "needsinput", " working", "done"} {
		_, err := agency.ParseLabel(text)
		if !agency.IsCode(err, agency.CodeUsage) || !strings.Contains(agency.AsError(err).Hint, "needs-input") {
			t.Errorf("ParseLabel(%q) = %v", text, err)
		}
	}
}

// Every label that needs the user is settled, and no label of a working run is.
func TestLabelKinds(t *testing.T) {
	t.Parallel()
	for _, l := range agency.Labels() {
		if l.NeedsUser() != (l.Mark() == "◐") {
			t.Errorf("%s: needs a user is %v, and its mark is %s", l, l.NeedsUser(), l.Mark())
		}
		if l.NeedsUser() && !l.Settled() {
			t.Errorf("%s needs a user and is not settled", l)
		}
		if l.Mark() == "●" && l.Settled() {
			t.Errorf("%s works and is settled", l)
		}
	}
}
