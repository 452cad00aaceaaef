package api

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"agency"
)

// Stream is what the daemon serves as GET Path with a query, and without an envelope around it. An
// error before the first byte is an envelope with its status. All streams only read, but for
// session.updates.
type Stream struct {
	Path    string
	Help    string       // one sentence: what it does
	Query   reflect.Type // a struct; its keys are those of the query
	Media   string       // media type of the answer; empty for an envelope
	Item    reflect.Type // what the answer holds, one after another; nil for bytes
	Upgrade string       // the protocol that the connection is taken over for; empty unless it is
	Errors  []agency.Code
}

// The paths of the streams, and of the connection of a wrapper, which is not for clients.
const (
	AlivePath          = "/v1/alive"
	EventsPath         = "/v1/events"
	LogsPath           = "/v1/logs"
	SessionUpdatesPath = "/v1/session.updates"
	WrapperPath        = "/v1/wrapper" // GET with Upgrade: agency-wrapper
)

// UpdatesProtocol is the protocol of session.updates.
const UpdatesProtocol = "agency-updates"

// Streams returns the table of streams, in the order of the documents.
func Streams() []Stream {
	return []Stream{
		{
			Path: EventsPath, Help: "Send every event after a number, in order and without a gap, and then new ones.",
			Query: reflect.TypeFor[EventsQuery](), Media: "text/event-stream", Item: reflect.TypeFor[agency.Event](),
			Errors: []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous},
		},
		{
			Path: LogsPath, Help: "Send the bytes of a log.",
			Query: reflect.TypeFor[LogsQuery](), Media: "application/octet-stream",
			Errors: []agency.Code{agency.CodeRunNotFound, agency.CodeRunAmbiguous},
		},
		{
			Path: SessionUpdatesPath, Help: "Take lines of reports on a session, and answer each line, in order, when it is durable.",
			Query: reflect.TypeFor[SessionRequest](), Media: "application/x-ndjson", Item: reflect.TypeFor[UpdateReply](), Upgrade: UpdatesProtocol,
			Errors: []agency.Code{agency.CodeSessionNotFound, agency.CodeRunAmbiguous, agency.CodeNotGitRepo, agency.CodeInvalidPath},
		},
		{
			Path: AlivePath, Help: "Answer without data, as soon as the daemon takes requests.",
			Query: reflect.TypeFor[Empty](),
		},
	}
}

// EventsQuery selects events.
type EventsQuery struct {
	Since int64  `json:"since,omitempty"` // the number of an event; only later events are sent. Last-Event-ID overrides it
	Run   string `json:"run,omitempty"`   // only events of this run; empty means all
}

// LogsQuery selects the bytes of a log.
type LogsQuery struct {
	Run     string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	Stream  string `json:"stream,omitempty"`  // which log: runner, stdout, stderr or wire; empty means runner
	Attempt int    `json:"attempt,omitempty"` // of which attempt; 0 means the newest
	Since   int64  `json:"since,omitempty"`   // only what was written since, in Unix milliseconds; 0 means all
	Tail    *int   `json:"tail,omitempty"`    // of that, only so many of the last lines
	Offset  *int64 `json:"offset,omitempty"`  // the first byte to send, counted from the first byte ever written; overrides since and tail
	Follow  bool   `json:"follow,omitempty"`  // continue until the attempt has ended
}

// encodeQuery returns the query for a struct. Zero fields are left out.
func encodeQuery(of any) url.Values {
	q, v := url.Values{}, reflect.ValueOf(of)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if value := reflect.Indirect(v.FieldByIndex(f.Index)); value.IsValid() && !v.FieldByIndex(f.Index).IsZero() {
			q.Set(queryKey(&f), fmt.Sprint(value.Interface()))
		}
	}
	return q
}

// DecodeQuery reads a query into a struct that into points to. An unknown key, or a value of
// another type, is E_USAGE.
func DecodeQuery(q url.Values, into any) error {
	v := reflect.ValueOf(into).Elem()
	known := []string{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		key := queryKey(&f)
		known = append(known, key)
		if q.Get(key) == "" {
			continue
		}
		if err := setQuery(v.FieldByIndex(f.Index), q.Get(key)); err != nil {
			return agency.Errorf(agency.CodeUsage, "%s is %q, not %s", key, q.Get(key), err)
		}
	}
	for key := range q {
		if !slices.Contains(known, key) {
			return agency.Errorf(agency.CodeUsage, "the query has the unknown key %q; known are %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

func queryKey(f *reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// setQuery sets a field of a query. The error names what the text should be.
func setQuery(field reflect.Value, text string) error {
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return setQuery(field.Elem(), text)
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("true or false")
		}
		field.SetBool(b)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return errors.New("a whole number from 0")
		}
		field.SetInt(n)
	}
	return nil
}

// The headers by which a request from within a run proves its sender, with the values that the
// wrapper gave the runner in AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN. Without them a request
// is the user's.
const (
	RunHeader     = "Agency-Run"
	AttemptHeader = "Agency-Attempt"
	TokenHeader   = "Agency-Token"
	// ToolsHeader marks the requests of an agent's tools, whether they belong to a run or not.
	ToolsHeader = "Agency-Tools"
	// InsideHeader marks the requests of an agent in a sandbox, which its wrapper relays.
	InsideHeader = "Agency-Inside"
)

// VersionHeader carries the version of the program on each request and response.
const VersionHeader = "Agency-Version"

// TraceHeader asks for the steps of the request in the answer.
const TraceHeader = "Agency-Trace"

// StreamRunHeader is the id of the run of a stream. A client that continues at the next daemon
// names the run by it: a part of a name can mean another run by then.
const StreamRunHeader = "Agency-Stream-Run"

// The position of a log's bytes: the attempt, and the offset of the first byte in the log.
const (
	LogAttemptHeader = "Agency-Log-Attempt"
	LogOffsetHeader  = "Agency-Log-Offset"
)
