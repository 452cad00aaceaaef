package mcp

import (
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// A hint names the tool that does what a command does, and says so when only the user can follow
// it.
func TestHintFor(t *testing.T) {
	t.Parallel()
	served := map[string]bool{}
	for _, c := range commands {
		served[c.tool] = c.tool != "run_explain"
	}
	schema := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"branch": {}}}
	for hint, want := range map[string]string{
		"":                                "",
		"agency show fix":                 "run_status(run: fix)",
		"agency ls --all-repos --all":     "run_list(include_ended: true)",
		"agency messages poll":            "messages_poll",
		"give another name with --branch": "give another name with branch",
		"give another name with --twig":   "give another name with --twig",
		"start a new run: agency run --prompt ...":                                                  "start a new run: run_create(prompt: ...)",
		"give it a new task: agency resume fix --prompt TEXT":                                       "give it a new task: run_resume(run: fix, prompt: ...)",
		"talk to it: agency send fix TEXT; or stop and start it again: agency resume --restart fix": "talk to it: run_send(run: fix, text: ...); or stop and start it again: run_resume(restart: true, run: fix)",
		"see what it does: agency show fix; look at its terminal: agency attach fix":                "see what it does: run_status(run: fix); look at its terminal: agency attach fix (for the user)",
		"agency explain fix":       "agency explain fix (for the user)",
		"agency rm --force fix":    "agency rm --force fix (for the user)",
		"such as agency/fix-login": "such as agency/fix-login",
	} {
		if got := hintFor(hint, served, schema); got != want {
			t.Errorf("%q: got  %q\nwant %q", hint, got, want)
		}
	}
}
