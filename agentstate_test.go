package agency_test

import (
	"strings"
	"testing"
	"time"

	"agency"
)

func TestPromptID(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1700000000123)
	request := &agency.Request{ID: "a", At: at}
	for want, s := range map[string]agency.Status{
		"a@1700000000123":           {Label: agency.NeedsInput, Since: at.Add(1), Request: request},
		"needs_input@1700000000123": {Label: agency.NeedsInput, Since: at},
		"blocked@1700000000123":     {Label: agency.Blocked, Since: at},
		"waiting@1700000000123":     {Label: agency.Waiting, Since: at},
		"":                          {Label: agency.Working, Since: at},
	} {
		if got := s.PromptID(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// A source with fewer details reported the same request first.
	for id, want := range map[string]bool{"a@1700000000123": true, "@1700000000123": true, "b@1700000000123": false, "a@1": false, "@1": false} {
		if got := request.Is(id); got != want {
			t.Errorf("%s: %t", id, got)
		}
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	for _, ok := range []agency.Reply{{Decision: agency.Allow}, {Decision: agency.Deny}, {Text: "the second one"}} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
	for _, bad := range []agency.Reply{
		{}, {Decision: "maybe"}, {Decision: agency.Allow, Text: "x"}, {Text: " "}, {Text: "a\rb"}, {Text: "\x1b"}, {Text: "\xff"}, {Text: strings.Repeat("x", agency.ReplyLimit+1)},
	} {
		if err := bad.Validate(); !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%.20q: %v", bad.Text, err)
		}
	}
}
