package api

// The streams, the wrapper's connection and an empty request, which are not operations.
const (
	AlivePath   = "/v1/alive"   // GET: an answer without data, as soon as the daemon accepts requests
	EventsPath  = "/v1/events"  // GET ?since=SEQ&run=REF: server-sent events; Last-Event-ID wins over since
	LogsPath    = "/v1/logs"    // GET ?run=REF&stream=&attempt=&since=&offset=&follow=: bytes; offset wins over since
	WrapperPath = "/v1/wrapper" // GET with Upgrade: agency-wrapper
)

// The headers by which a request from within a run proves its sender, with the values that the
// wrapper gave the runner in AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN. Without them a request
// is the user's.
const (
	RunHeader     = "Agency-Run"
	AttemptHeader = "Agency-Attempt"
	TokenHeader   = "Agency-Token"
	// ToolsHeader marks the requests of an agent's tools, whether they belong to a run or not.
	ToolsHeader = "Agency-Tools"
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
