package agency_test

import (
	"strings"
	"testing"

	"agency"
)

func TestSpecValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *agency.Spec)
		code   agency.Code // empty for a valid spec
	}{
		{"as it is", func(*agency.Spec) {}, ""},
		{"everything", func(s *agency.Spec) {
			s.Name, s.Type, s.Tags, s.Env = "fix-login", "plan", []string{"worker"}, []string{"A=", "B=c=d"}
			s.Inputs, s.Limits.MaxMinutes = []agency.SpecInput{{Path: "a.txt"}, {Path: "b.txt", Mode: "read"}}, 60*24*30
		}, ""},
		{"custom", func(s *agency.Spec) { s.Runner = agency.SpecRunner{Kind: agency.Custom, Name: "aider"} }, ""},
		{"a name in capitals", func(s *agency.Spec) { s.Name = "Fix" }, agency.CodeUsage},
		{"a type of two words", func(s *agency.Spec) { s.Type = "a b" }, agency.CodeUsage},
		{"an empty tag", func(s *agency.Spec) { s.Tags = []string{""} }, agency.CodeUsage},
		{"no kind", func(s *agency.Spec) { s.Runner.Kind = "" }, agency.CodeSpecInvalid},
		{"custom without a name", func(s *agency.Spec) { s.Runner.Kind = agency.Custom }, agency.CodeSpecInvalid},
		{"a model that is an option", func(s *agency.Spec) { s.Runner.Model = "--yolo" }, agency.CodeSpecInvalid},
		{"two prompts", func(s *agency.Spec) { s.Prompt.Path = "task.md" }, agency.CodeSpecInvalid},
		{"negative minutes", func(s *agency.Spec) { s.Limits.MaxMinutes = -1 }, agency.CodeSpecInvalid},
		{"too many minutes", func(s *agency.Spec) { s.Limits.MaxMinutes = 60*24*30 + 1 }, agency.CodeSpecInvalid},
		{"env without a value", func(s *agency.Spec) { s.Env = []string{"A"} }, agency.CodeSpecInvalid},
		{"env without a name", func(s *agency.Spec) { s.Env = []string{"=a"} }, agency.CodeSpecInvalid},
		{"env with a NUL", func(s *agency.Spec) { s.Env = []string{"A=\x00"} }, agency.CodeSpecInvalid},
		{"env of agency", func(s *agency.Spec) { s.Env = []string{"AGENCY_TOKEN=a"} }, agency.CodeSpecInvalid},
		{"an input without a path", func(s *agency.Spec) { s.Inputs = []agency.SpecInput{{}} }, agency.CodeSpecInvalid},
		{"an input to write", func(s *agency.Spec) { s.Inputs = []agency.SpecInput{{Path: "a", Mode: "write"}} }, agency.CodeSpecInvalid},
		{"an argument with a NUL", func(s *agency.Spec) { s.Runner.Args = []string{"\x00"} }, agency.CodeSpecInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := agency.Spec{Runner: agency.SpecRunner{Kind: "claude_code"}, Prompt: agency.SpecPrompt{Text: "do it"}}
			tt.change(&s)
			err := s.Validate()
			if (err == nil) != (tt.code == "") || (err != nil && !agency.IsCode(err, tt.code)) {
				t.Errorf("got %v, want %q", err, tt.code)
			}
		})
	}
}

func TestCheckPrompt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"text":      {"fix it", true},
		"the limit": {strings.Repeat("a", agency.PromptLimit), true},
		"too long":  {strings.Repeat("a", agency.PromptLimit+1), false},
		"blank":     {" \n\t", false},
		"NUL":       {"a\x00b", false},
	} {
		if err := agency.CheckPrompt(tt.text); (err == nil) != tt.ok || (err != nil && !agency.IsCode(err, agency.CodeSpecInvalid)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckSystemPrompt(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "Be brief.\r\n\tAlways. é": true, "\x00": false, "\x1b[31m": false, "\xff": false,
		strings.Repeat("x", agency.SystemPromptLimit): true, strings.Repeat("x", agency.SystemPromptLimit+1): false,
	} {
		if err := agency.CheckSystemPrompt(text); (err == nil) != ok {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for _, kind := range []agency.RunnerKind{agency.Shell, agency.Custom} {
		for _, spec := range []agency.Spec{
			{Runner: agency.SpecRunner{Kind: kind, Name: "x"}, SystemPrompt: "Be brief."},
			{Runner: agency.SpecRunner{Kind: kind, Name: "x", SkipPermissions: true}},
		} {
			if err := spec.Validate(); !agency.IsCode(err, agency.CodeSpecInvalid) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}
