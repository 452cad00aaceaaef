package api

import "agency"

// SchemaVersion is the version of every JSON shape that agency prints or sends.
const SchemaVersion = 1

// Envelope is the one form of every answer: data when all is well, else an error. The daemon sends it and every
// command prints exactly one with --json.
type Envelope struct {
	OK            bool     `json:"ok"`
	SchemaVersion int      `json:"schema_version"`
	Data          any      `json:"data,omitempty"` // to decode into a type, set it to a pointer first
	Error         *Problem `json:"error,omitempty"`
}

// Problem is an error on the wire.
type Problem struct {
	Code    agency.Code    `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"` // the way out
	Details map[string]any `json:"details"`
}

// Success wraps data.
func Success(data any) Envelope {
	return Envelope{OK: true, SchemaVersion: SchemaVersion, Data: data}
}

// Failure wraps an error, which is never nil.
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

// Err is the error that the envelope carries, nil when it carries data.
func (e *Envelope) Err() error {
	if e.Error == nil {
		return nil
	}
	return &agency.Error{Code: e.Error.Code, Message: e.Error.Message, Hint: e.Error.Hint, Details: e.Error.Details}
}
