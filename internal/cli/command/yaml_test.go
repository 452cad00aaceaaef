package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"agency/internal/cli/command"
)

// What YAML writes reads back as what JSON has.
func TestYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"ok": true, "data": {"runs": [{"id": "r_1", "tags": ["a", "b: c"], "pr": null, "on": {"x y": [], "null": {}}}, {"id": "#2", "n": 1.5}]}}`,
		`{"text": "two\nlines: \"and\" \u001b[31m界", "lists": [[1, [2]], [], [{}]], "no": "yes", "empty": ""}`,
		`[]`, `{}`, `"x"`, `[[["deep"]]]`,
	} {
		var data, got any
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := command.YAML(&out, data); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		back, err := json.Marshal(got)
		want, _ := json.Marshal(data)
		if diff := cmp.Diff(string(want), string(back)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
		if strings.ContainsRune(out.String(), 0x1b) {
			t.Errorf("an escape sequence is raw in %q", out.String())
		}
	}
}
