package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"agency"
)

// ToolText returns the most informative part of a tool's input as text.
func ToolText(input json.RawMessage) string {
	var fields struct {
		Questions []struct {
			Question string `json:"question"`
		} `json:"questions"`
		Command  string `json:"command"`
		File     string `json:"file_path"`
		FilePath string `json:"filePath"`
		Notebook string `json:"notebook_path"`
		URL      string `json:"url"`
		Query    string `json:"query"`
		Pattern  string `json:"pattern"`
		Plan     string `json:"plan"`
		About    string `json:"description"`
	}
	if !Lenient(input, &fields) {
		return ""
	}
	questions := make([]string, 0, len(fields.Questions))
	for _, q := range fields.Questions {
		questions = append(questions, q.Question)
	}
	for _, text := range []string{
		strings.Join(questions, "\n"), fields.Command, fields.File, fields.FilePath, fields.Notebook, fields.URL, fields.Query, fields.Pattern, fields.Plan, fields.About,
	} {
		if text != "" {
			return text
		}
	}
	if text := string(input); text != "{}" && text != "null" {
		return text
	}
	return ""
}

// Lenient reads JSON of another program. It leaves out a field of an unexpected type, and keeps the
// rest.
func Lenient(data []byte, into any) bool {
	err := json.Unmarshal(data, into)
	var mismatch *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mismatch)
}

// StatusClass returns the class of an error by its HTTP status.
func StatusClass(status int) agency.ErrorClass {
	switch {
	case status == 401 || status == 403:
		return agency.ErrorAuth
	case status == 402:
		return agency.ErrorBilling
	case status == 429:
		return agency.ErrorRateLimit
	case status == 503 || status == 529:
		return agency.ErrorOverloaded
	case status >= 500:
		return agency.ErrorServer
	case status >= 400:
		return agency.ErrorRequest
	default:
		return agency.ErrorOther
	}
}

// Mentions returns a function that reports whether a text contains one of its arguments, in upper or lower
// case. The arguments are lower case.
func Mentions(text string) func(parts ...string) bool {
	text = strings.ToLower(text)
	return func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
}

// ErrorClass returns the class of an error by its text, where nothing else shows it.
func ErrorClass(text string) agency.ErrorClass {
	mentions := Mentions(text)
	switch {
	case mentions("prompt is too long", "context length", "context window", "context_length_exceeded", "exceeds the maximum number of tokens"):
		return agency.ErrorContext
	case mentions("insufficient_quota", "billing", "payment", "credit balance"):
		return agency.ErrorBilling
	case mentions("rate limit", "rate_limit", "too many requests", "resource_exhausted", "quota", "429"):
		return agency.ErrorRateLimit
	case mentions("api key", "api-key", "api_key", "unauthenticated", "unauthorized", "authentication", "permission_denied"):
		return agency.ErrorAuth
	case mentions("overloaded", "unavailable", "at capacity", "529"):
		return agency.ErrorOverloaded
	case mentions("invalid_argument", "invalid_request", "bad request"):
		return agency.ErrorRequest
	case mentions("internal server error", "server error"):
		return agency.ErrorServer
	case mentions("fetch failed", "econn", "connection", "timed out", "timeout", "network", "socket"):
		return agency.ErrorNetwork
	default:
		return agency.ErrorOther
	}
}
