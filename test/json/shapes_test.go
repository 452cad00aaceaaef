package json_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agency/docs"
)

// answers maps the commands whose data is the response of an operation, by the first words of their
// arguments, to that operation.
var answers = map[string]string{
	"ls": "run.list", "ls --standby": "standby.list", "api run.list": "run.list", "show": "run.show", "ports": "run.show", "explain": "run.explain", "run": "run.create", "send": "run.send",
	"diff": "run.diff", "flag": "run.flag", "unflag": "run.unflag", "rm": "run.remove", "stop": "run.stop", "wait": "run.wait",
	"events": "event.list", "doctor": "doctor", "gc": "gc", "notify ls": "notify.list", "init": "project.init",
	"trust": "trust.grant", "trust --show": "trust.show", "trust --revoke": "trust.revoke",
	"watchdog start": "timer.start", "watchdog stop": "timer.stop", "watchdog status": "timer.list",
	"session plan": "session.plan", "session start": "session.start", "session pause": "session.pause", "session resume": "session.resume",
	"merge paint": "run.merge", "review fresco": "session.review", "merge fresco": "session.merge",
	"queue ls": "queue.list", "queue pause": "queue.pause",
	"session create": "session.create", "session show": "session.show", "session ls": "session.list", "session rm": "session.remove",
}

// shapes checks that answers have the shapes that docs/openapi.json promises.
type shapes struct {
	compiler *jsonschema.Compiler
	checked  map[string]bool // keys of answers
}

func readShapes(t *testing.T) *shapes {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(docs.OpenAPI))
	if err != nil {
		t.Fatal(err)
	}
	s := &shapes{compiler: jsonschema.NewCompiler(), checked: map[string]bool{}}
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return s
}

// check checks the whole envelope of a command that succeeded.
func (s *shapes) check(t *testing.T, args, envelope string) {
	t.Helper()
	words := strings.Fields(args)
	command := strings.Join(words[:min(2, len(words))], " ")
	if answers[command] == "" {
		command = words[0]
	}
	if answers[command] == "" || strings.HasPrefix(args, "session show") && len(words) > 3 { // some flags print less
		return
	}
	s.checked[command] = true
	place := "/paths/~1v1~1" + answers[command] + "/post/responses/200/content/application~1json/schema"
	schema, err := s.compiler.Compile("openapi.json#" + place)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(envelope))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("agency %s: %v", args, err)
	}
}

// checkAll fails for a command of answers that was not seen.
func (s *shapes) checkAll(t *testing.T) {
	t.Helper()
	for command := range answers {
		if !s.checked[command] {
			t.Errorf("no answer of agency %s was seen", command)
		}
	}
}
