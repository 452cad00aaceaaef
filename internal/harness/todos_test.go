package harness_test

import (
	"fmt"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

// Each protocol has its own way to tell the list of an agent's work.
func TestTodos(t *testing.T) {
	t.Parallel()
	const claude = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"%s","name":"%s","input":%s}]}}`
	call := func(id, tool, input string) string { return fmt.Sprintf(claude, id, tool, input) }
	result := func(id, returned string, failed bool) string {
		return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"x","is_error":%t}]},"tool_use_result":%s}`, id, failed, returned)
	}
	for _, c := range []struct {
		name, kind string
		lines      []string
		want       string
	}{
		{"TodoWrite", "claude_code", []string{
			call("a", "TodoWrite", `{"todos":[{"content":"old","status":"pending"}]}`),
			call("b", "TodoWrite", `{"todos":[{"content":"read\nthe code","status":"completed"},{"content":"fix","status":"in_progress"},{"content":"test","status":"later"}]}`),
		}, "completed read the code, in_progress fix, pending test"},
		{"TaskCreate and TaskUpdate", "claude_code", []string{
			call("a", "TaskCreate", `{"subject":"read","description":"all of it"}`),
			call("b", "TaskCreate", `{"subject":"fix","description":""}`),
			result("a", `{"task":{"id":"1","subject":"read"}}`, false), result("b", `{"task":{"id":"2","subject":"fix"}}`, false),
			call("c", "TaskCreate", `{"subject":"refused","description":""}`), result("c", `"Error: no"`, true),
			call("d", "TaskCreate", `{"subject":"gone","description":""}`), result("d", `{"task":{"id":"3","subject":"gone"}}`, false),
			call("e", "TaskUpdate", `{"taskId":"1","status":"completed"}`), call("f", "TaskUpdate", `{"taskId":"2","subject":"fix it","status":"in_progress"}`),
			call("g", "TaskUpdate", `{"taskId":"3","status":"deleted"}`), call("h", "TaskUpdate", `{"taskId":"9","status":"completed"}`),
		}, "completed read, in_progress fix it"},
		{"another tool", "claude_code", []string{call("a", "Bash", `{"command":"ls","todos":[]}`)}, ""},
		{"a plan", "codex", []string{
			`{"method":"turn/plan/updated","params":{"threadId":"t","turnId":"u","explanation":null,"plan":[{"step":"read","status":"completed"},{"step":"fix","status":"inProgress"},{"step":"test","status":"pending"}]}}`,
		}, "completed read, in_progress fix, pending test"},
		{"a plan", "opencode", []string{
			`{"id":"agency-hello","result":{"sessionId":"s"}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"read","priority":"high","status":"completed"},{"content":"fix","priority":"low","status":"pending"}]}}}`,
		}, "completed read, pending fix"},
		{"todowrite", "opencode", []string{
			`{"id":"agency-hello","result":{"sessionId":"s"}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"todowrite","kind":"other","rawInput":{}}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"todowrite","kind":"other","status":"in_progress","rawInput":{"todos":[{"content":"read","priority":"high","status":"completed"},{"content":"fix","priority":"high","status":"in_progress"}]}}}}`,
		}, "completed read, in_progress fix"},
	} {
		talk := protocol.New(harness.Dialect(agency.RunnerKind(c.kind), ""), protocol.Start{Dir: "/work"})
		talk.Intend(protocol.Intent{Saying: protocol.Hello()})
		var last []agency.Todo
		for _, line := range c.lines {
			for _, e := range talk.Hear([]byte(line)).Evidence {
				if e.Signal == agency.SignalTodos {
					last = agency.ParseTodos(e.Todos)
				}
			}
		}
		words := make([]string, 0, len(last))
		for _, todo := range last {
			words = append(words, string(todo.State)+" "+todo.Text)
		}
		if got := strings.Join(words, ", "); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.name, c.kind, got, c.want)
		}
	}
}
