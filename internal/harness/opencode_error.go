package harness

import (
	"encoding/json"
	"strings"

	"agency"
)

// opencodeError is an error of OpenCode, of a session or in its stream.
type opencodeError struct {
	Name string `json:"name"`
	Data struct {
		Message string          `json:"message"`
		Status  int             `json:"statusCode"`
		Body    json.RawMessage `json:"responseBody"`
	} `json:"data"`
}

// opencodeOverflow is the name of an error that OpenCode meets by itself: it sums the conversation up and goes on, unless
// its user forbade that.
const opencodeOverflow = "ContextOverflowError"

func (e *opencodeError) evidence() agency.Evidence {
	if e == nil {
		return agency.Evidence{Sign: agency.SignUnknown}
	}
	failed := agency.Evidence{Sign: agency.SignFailed, Class: e.class(), Text: e.Data.Message}
	switch e.Name {
	case "MessageAbortedError":
		return agency.Evidence{Sign: agency.SignInterrupted}
	case opencodeOverflow:
		failed.Sign = agency.SignRetrying
	}
	if failed.Text == "" {
		failed.Text = e.Name
	}
	return failed
}

func (e *opencodeError) class() agency.ErrorClass {
	switch e.Name {
	case "ProviderAuthError":
		return agency.ErrorAuth
	case opencodeOverflow, "MessageOutputLengthError":
		return agency.ErrorContext
	}
	// Some words say more than the status: a spent budget is a 429 too.
	if class := errorClass(e.Data.Message); class == agency.ErrorBilling || class == agency.ErrorContext {
		return class
	}
	if class := statusClass(e.Data.Status); class != agency.ErrorOther {
		return class
	}
	return errorClass(e.Data.Message + " " + string(e.Data.Body))
}

// errorClass sorts an error by its words, for want of anything better.
func errorClass(text string) agency.ErrorClass {
	text = strings.ToLower(text)
	says := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case says("prompt is too long", "context length", "context window", "context_length_exceeded", "exceeds the maximum number of tokens"):
		return agency.ErrorContext
	case says("insufficient_quota", "billing", "payment", "credit balance"):
		return agency.ErrorBilling
	case says("rate limit", "rate_limit", "too many requests", "resource_exhausted", "quota", "429"):
		return agency.ErrorRateLimit
	case says("api key", "api-key", "api_key", "unauthenticated", "unauthorized", "authentication", "permission_denied"):
		return agency.ErrorAuth
	case says("overloaded", "unavailable", "at capacity", "529"):
		return agency.ErrorOverloaded
	case says("invalid_argument", "invalid_request", "bad request"):
		return agency.ErrorRequest
	case says("internal server error", "server error"):
		return agency.ErrorServer
	case says("fetch failed", "econn", "connection", "timed out", "timeout", "network", "socket"):
		return agency.ErrorNetwork
	default:
		return agency.ErrorOther
	}
}
