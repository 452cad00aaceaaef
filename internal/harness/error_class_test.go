package harness_test

import (
	"fmt"
	"testing"

	"agency"
	"agency/internal/harness"
)

// What went wrong between an agent and its model is sorted the same, in whatever words the agent says it.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	claude := func(name, text string) []agency.Evidence {
		return harness.Hook("claude_code", fmt.Appendf(nil, `{"hook_event_name":"StopFailure","error":%q,"last_assistant_message":%q}`, name, text))
	}
	codex := func(text string) []agency.Evidence {
		return harness.Stream("codex", fmt.Appendf(nil, `{"type":"turn.failed","error":{"message":%q}}`, text))
	}
	gemini := func(text string) []agency.Evidence {
		return harness.Stream("gemini", fmt.Appendf(nil, `{"type":"result","status":"error","error":{"message":%q}}`, text))
	}
	opencode := func(status int, text string) []agency.Evidence {
		return harness.Hook("opencode", fmt.Appendf(nil,
			`[{"type":"session.error","properties":{"sessionID":"s","error":{"name":"APIError","data":{"message":%q,"statusCode":%d}}}}]`, text, status))
	}
	for want, said := range map[agency.ErrorClass][][]agency.Evidence{
		agency.ErrorAuth: {
			claude("authentication_failed", "Invalid API key"), codex("unexpected status 401 Unauthorized"), gemini("API key not valid"), opencode(401, "no"),
		},
		agency.ErrorRateLimit: {
			claude("rate_limit", ""), codex("unexpected status 429 Too Many Requests"), gemini("429 RESOURCE_EXHAUSTED"), opencode(429, "slow down"),
		},
		agency.ErrorBilling: {
			claude("billing_error", "Credit balance is too low"), codex("insufficient_quota"), gemini("billing is not enabled"), opencode(402, "pay"),
		},
		agency.ErrorContext: {
			claude("invalid_request", "Prompt is too long"), codex("your input exceeds the context window"),
			gemini("exceeds the maximum number of tokens"), opencode(400, "prompt is too long: 9 tokens"),
		},
		agency.ErrorOverloaded: {
			claude("overloaded", ""), claude("server_error", "529 Overloaded"), codex("unexpected status 503 Service Unavailable"),
			gemini("The model is overloaded"), opencode(529, "Overloaded"),
		},
		agency.ErrorOther: {claude("something_new", ""), codex("hm"), gemini("hm"), opencode(0, "hm")},
	} {
		for i, evidence := range said {
			if len(evidence) == 0 || evidence[len(evidence)-1].Sign != agency.SignFailed || evidence[len(evidence)-1].Class != want {
				t.Errorf("%s, %d: got %+v", want, i, evidence)
			}
		}
	}
}
