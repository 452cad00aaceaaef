package opencode

import (
	"encoding/json"

	"agency"
	"agency/internal/harness/agent"
)

// failure is an error of OpenCode, from a session or its stream.
type failure struct {
	Name string `json:"name"`
	Data struct {
		Message string          `json:"message"`
		Status  int             `json:"statusCode"`
		Body    json.RawMessage `json:"responseBody"`
	} `json:"data"`
}

// overflow is the name of an error that OpenCode handles itself: it summarises the conversation and
// continues, unless its user forbade that.
const overflow = "ContextOverflowError"

func (e *failure) evidence() agency.Evidence {
	if e == nil {
		return agency.Evidence{Signal: agency.SignalUnknown}
	}
	failed := agency.Evidence{Signal: agency.SignalFailed, Class: e.class(), Text: e.Data.Message}
	switch e.Name {
	case "MessageAbortedError":
		return agency.Evidence{Signal: agency.SignalInterrupted}
	case overflow:
		failed.Signal = agency.SignalRetrying
	}
	if failed.Text == "" {
		failed.Text = e.Name
	}
	return failed
}

func (e *failure) class() agency.ErrorClass {
	switch e.Name {
	case "ProviderAuthError":
		return agency.ErrorAuth
	case overflow, "MessageOutputLengthError":
		return agency.ErrorContext
	}
	// Some texts are more precise than the status: a spent budget is a 429 too.
	if class := agent.ErrorClass(e.Data.Message); class == agency.ErrorBilling || class == agency.ErrorContext {
		return class
	}
	if class := agent.StatusClass(e.Data.Status); class != agency.ErrorOther {
		return class
	}
	return agent.ErrorClass(e.Data.Message + " " + string(e.Data.Body))
}
