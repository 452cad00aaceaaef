// Package relay passes requests of an agent in a sandbox to the daemon, in the name of its run. The agent
// has neither the daemon's socket nor the token of its run.
package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/socket"
)

// The limits of what an agent can ask of a relay.
const (
	mostConnections = 128
	headerBytes     = 16 << 10
	bodyBytes       = 1 << 20  // of a request
	smallBytes      = 64 << 10 // of a request; only one larger request at a time is passed on
	headerTime      = 10 * time.Second
	idleTime        = time.Minute
)

// Relay passes on the requests of one attempt.
type Relay struct {
	launch *agency.Launch
	proxy  *httputil.ReverseProxy
	slots  socket.Slots
	large  chan struct{} // holds a token while a large request is passed on
}

// New returns the relay of an attempt.
func New(launch *agency.Launch) *Relay {
	r := &Relay{launch: launch, slots: socket.NewSlots(mostConnections), large: make(chan struct{}, 1)}
	r.proxy = &httputil.ReverseProxy{
		Rewrite: r.rewrite,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return socket.Dial(ctx, launch.Socket)
			},
			// The daemon could close a kept connection just when the relay sends a request on it.
			DisableKeepAlives: true, DisableCompression: true,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, unanswered(err)) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	return r
}

// Serve answers the requests on a listener until the listener fails, and closes it.
func (r *Relay) Serve(l net.Listener) {
	server := &http.Server{
		Handler: r, MaxHeaderBytes: headerBytes, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	_ = server.Serve(r.slots.Listener(l))
}

// ServeHTTP passes a request on, if the daemon takes it from a sandbox.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, ok := strings.CutPrefix(req.URL.Path, "/v1/")
	switch {
	case req.Method == http.MethodGet && (req.URL.Path == api.AlivePath || req.URL.Path == api.LogsPath):
	case req.Method == http.MethodPost && ok && api.Inside(name):
	default:
		fail(w, agency.Errorf(agency.CodePermissionDenied, "%q does not work in a sandbox", name).WithHint("%s", api.InsideHint))
		return
	}
	// The daemon holds a request in memory, in several forms.
	if req.ContentLength < 0 || req.ContentLength > bodyBytes {
		fail(w, agency.Errorf(agency.CodeUsage, "a request from a sandbox may have %d bytes, and says how many it has", bodyBytes).
			WithHint("put what is long into a file of the worktree, commit it, and name it"))
		return
	}
	if req.ContentLength > smallBytes {
		select {
		case r.large <- struct{}{}:
			defer func() { <-r.large }()
		case <-req.Context().Done():
			return
		}
	}
	// The daemon may answer before it has read the whole request, and then closes the connection. So the relay
	// first reads the request whole: otherwise the rest, which it still had to send, could lose the answer.
	body, err := io.ReadAll(req.Body)
	if err != nil {
		fail(w, agency.Errorf(agency.CodeUsage, "the request ended after %d of its %d bytes", len(body), req.ContentLength))
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.proxy.ServeHTTP(w, req)
}

// passed are the headers of a request that the relay passes on.
var passed = []string{"Content-Type", api.VersionHeader, api.ShapeHeader, api.TraceHeader}

// rewrite makes a request one of the run, whatever sender it names.
func (r *Relay) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.RawQuery = "http", "agency", p.In.URL.RawQuery
	p.Out.Host = "agency"
	if p.Out.Body != nil {
		p.Out.Body = p.In.Body // the transport recognizes that it is in memory, and sends it with the header
	}
	p.Out.Header = http.Header{
		api.RunHeader: {string(r.launch.RunID)}, api.AttemptHeader: {strconv.Itoa(r.launch.Attempt)}, api.TokenHeader: {r.launch.Token},
		api.InsideHeader: {"1"},
	}
	for _, name := range passed {
		if value := p.In.Header.Get(name); value != "" {
			p.Out.Header.Set(name, value)
		}
	}
}

// unanswered returns the error for a request that the daemon did not answer.
func unanswered(err error) error {
	op, is := errors.AsType[*net.OpError](err)
	dialing := is && op.Op == "dial"
	switch {
	case dialing && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return agency.Errorf(agency.CodeDaemonConnectFailed, "no daemon runs outside the sandbox").
			WithHint("the next agency command of the user starts it")
	case dialing:
		return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon outside the sandbox cannot be reached: %w", op.Err)
	}
	if e, is := errors.AsType[*agency.Error](err); is {
		return e
	}
	return agency.Errorf(agency.CodeDaemonLost, "the daemon went away before it answered, and may have done what was asked: %w", err).
		WithHint("see whether it was done: agency ls")
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(agency.AsError(err).Code.HTTPStatus())
	_ = api.EncodeLine(w, api.Failure(err)) // a client that has disconnected needs no answer
}
