package api

import "agency"

// SchemaVersion is the version of every JSON shape that agency prints or sends.
const SchemaVersion = 1

// Envelope is the form of every answer: data, or an error. The daemon sends it, and every command
// with --json prints exactly one.
type Envelope struct {
	OK            bool     `json:"ok"`
	SchemaVersion int      `json:"schema_version"`
	Data          any      `json:"data,omitempty"` // to decode into a type, set it to a pointer first
	Error         *Problem `json:"error,omitempty"`
	// Trace are the steps of the request in the daemon and the wrapper, if TraceHeader asked for them.
	Trace []agency.Span `json:"trace,omitempty"`
}

// Problem is an error in JSON.
type Problem struct {
	Code    agency.Code    `json:"code"`           // what kind of error it is
	Message string         `json:"message"`        // what happened, for people; may quote an agent or a repository: untrusted
	Hint    string         `json:"hint,omitempty"` // what the user can do, most often a command; left out when nothing is known
	Details map[string]any `json:"details"`        // an object with more about the error; empty for most
}

// Success wraps data.
func Success(data any) Envelope {
	return Envelope{OK: true, SchemaVersion: SchemaVersion, Data: data}
}

// Failure wraps an error, which must not be nil.
func Failure(err error) Envelope {
	e := agency.AsError(err)
	details := e.Details
	if details == nil {
		details = map[string]any{}
	}
	return Envelope{
		SchemaVersion: SchemaVersion,
		Error:         &Problem{Code: e.Code, Message: e.Message, Hint: e.Hint, Details: details},
	}
}

// Err returns the error in the envelope, nil when it has data.
func (e *Envelope) Err() error {
	if e.Error == nil {
		return nil
	}
	return &agency.Error{Code: e.Error.Code, Message: e.Error.Message, Hint: e.Error.Hint, Details: e.Error.Details}
}
