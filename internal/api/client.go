package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/socket"
	"agency/internal/trace"
)

// Client talks to the daemon over its unix socket. It is safe for concurrent use.
type Client struct {
	Socket  string
	Version string // version of this program, sent with each request
	// Start starts a daemon that listens on Socket. When nil, a missing daemon is an error.
	Start func(ctx context.Context) error
	// AwaitNext, if not nil, is called before Start for clients that follow a stream. It returns at
	// once unless the daemon was asked to stop; then it waits until another daemon was started: a
	// client that only watches must not undo a stop.
	AwaitNext func(ctx context.Context) error
	// Holder, if not nil, returns the process that holds the data root, to distinguish a daemon
	// that is starting from one that hangs.
	Holder func() (Holder, error)
	// Schema returns the newest version of the record that a daemon of this program can read. When
	// nil, the client replaces no daemon of another version.
	Schema func() int
	// Trace, if not nil, collects the steps of operations, those in the daemon too.
	Trace *trace.Trace
	// Header is sent with each request; it may be nil.
	Header http.Header
	// Refuse, if not nil, is the error of every call: no daemon can be reached from here.
	Refuse error

	http     http.Client
	met      atomic.Bool // a daemon of this version has answered, or was lost with a request
	outlived atomic.Bool // then one of another version took its place
	follows  atomic.Bool // this client reads a stream that does not end by itself
}

// keepIdle is how long an idle connection is kept for the next request. It is shorter than the
// daemon's limit, so that no request is sent on a connection that the daemon is closing.
const keepIdle = 20 * time.Second

// NewClient returns a client. It does not connect before the first request.
func NewClient(path, version string, start func(ctx context.Context) error) *Client {
	c := &Client{Socket: path, Version: version, Start: start}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return socket.Dial(ctx, path)
		},
		DisableCompression: true,
		IdleConnTimeout:    keepIdle,
	}
	return c
}

// Call runs an operation. It starts a missing daemon, and replaces a daemon of another version by
// one of this version when that loses no request; runs continue meanwhile. It returns the error of
// ctx, or an *agency.Error: the daemon's own, or E_DAEMON_CONNECT_FAILED.
func Call[Req, Resp any](ctx context.Context, c *Client, op Operation[Req, Resp], req Req) (Resp, error) {
	var resp Resp
	err := c.call(ctx, op.Name, op.Kind, req, &resp)
	return resp, err
}

// CallText is Call for a program that only prints the answer: it returns the envelope as Encode
// writes it, without decoding what is in it.
func CallText[Req, Resp any](ctx context.Context, c *Client, op Operation[Req, Resp], req Req) ([]byte, error) {
	var text envelopeText
	err := c.call(ctx, op.Name, op.Kind, req, &text)
	return text, err
}

// envelopeText is the envelope of a successful answer, as Encode writes it.
type envelopeText []byte

// call runs the operation with the given name and reads its response into resp, a pointer.
func (c *Client) call(ctx context.Context, name string, kind Kind, req, resp any) error {
	defer c.Trace.Begin("request", name)()
	began := time.Now()
	send := func() error {
		body, err := encode(req, time.Since(began))
		if err != nil {
			return fmt.Errorf("encode request of %s: %w", name, err)
		}
		if kind == Acts {
			if err := c.alive(ctx, readTimeout); err != nil {
				return notAsked(err)
			}
		}
		ctx, cancel := c.within(ctx, kind, req)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agency"+operationPath(name), bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("make request of %s: %w", name, err)
		}
		r.Header.Set("Content-Type", "application/json")
		data := reflect.New(reflect.TypeOf(resp)).Elem() // stays nil when the answer has no data
		err = c.ask(r, data.Addr().Interface())
		switch {
		case errors.Is(err, ErrSilent) && kind == Acts:
			return unanswered(err)
		case err != nil:
			return err
		case data.IsNil():
			return unreadable(errors.New("there is no data in it"))
		}
		reflect.ValueOf(resp).Elem().Set(data.Elem())
		return nil
	}
	return c.withDaemon(ctx, kind != Acts, kind.timeout(req), send)
}

// ask sends a request and reads its answer into data, a pointer or nil.
func (c *Client) ask(r *http.Request, data any) error {
	answer, err := c.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	return c.orSilent(r.Context(), c.readEnvelope(answer, data))
}

// within returns the context of a request. Reads have a time limit; Waits continue while the daemon
// answers other requests.
func (c *Client) within(ctx context.Context, k Kind, req any) (context.Context, context.CancelFunc) {
	limit := k.limit(req)
	if k == Reads {
		return context.WithTimeoutCause(ctx, limit, silentFor(limit))
	}
	ctx, cancel := c.whileAlive(ctx)
	if limit == 0 {
		return ctx, cancel
	}
	ctx, over := context.WithTimeoutCause(ctx, limit, silentFor(limit))
	return ctx, func() { over(); cancel() }
}

// limited is a request with a time limit that the daemon applies.
type limited interface {
	// after returns the request to send again when part of its time has passed.
	after(passed time.Duration) any
	// time returns its time limit; 0 means none.
	time() time.Duration
}

// encode returns the body of a request, sent when the given time has passed since the first try.
func encode(req any, passed time.Duration) ([]byte, error) {
	if l, ok := req.(limited); ok {
		req = l.after(passed)
	}
	return json.Marshal(req)
}

// left returns how many of a request's milliseconds are left, at least one: with zero, the next
// daemon would wait without a limit.
func left(ms int64, passed time.Duration) int64 {
	if ms <= 0 {
		return ms
	}
	return max(1, ms-passed.Milliseconds())
}

// withDaemon runs send. When the daemon is missing, it starts one and runs send again, also when
// the daemon was about to stop and still answered Start, or was killed as it started. A request
// that may have been carried out is sent again only if again is true, because repeating it does no
// harm; so a client that waits outlives the daemon. withDaemon returns an error when daemons have
// gone away for as long as timeout. It replaces daemons of another version, but not when this
// client has met a daemon of its own version: then the other one is an upgrade, which serves this
// client as far as the operation is the same.
func (c *Client) withDaemon(ctx context.Context, again bool, timeout time.Duration, send func() error) error {
	if c.Refuse != nil {
		return c.Refuse
	}
	row := inARow{timeout: timeout}
	for silent, replaced := false, 0; ; {
		began, outlived := time.Now(), c.outlived.Load()
		err := send()
		switch {
		case err == nil:
			c.met.Store(true)
			return nil
		case c.Start == nil:
			return err
		case errors.Is(err, ErrSilent) && (silent || c.met.Load() || !c.starting() || agency.IsCode(err, agency.CodeDaemonLost)):
			return err // the daemon is there and a second one cannot start; or the request may have been carried out
		case errors.Is(err, ErrSilent): // a daemon that is starting already listens: Start waits until it answers
			silent = true
		case agency.IsCode(err, agency.CodeDaemonConnectFailed):
		case agency.IsCode(err, agency.CodeDaemonLost) && again:
			c.met.Store(true) // it had taken the request: one of another version refuses at once
		case agency.IsCode(err, agency.CodeDaemonVersion) && c.met.Load() && !outlived:
			c.outlived.Store(true)
			continue
		case agency.IsCode(err, agency.CodeDaemonVersion) && c.met.Load():
			return outdated(agency.AsError(err), c.Version)
		case agency.IsCode(err, agency.CodeDaemonVersion) && replaced < mostReplaced:
			if err := c.replaceable(agency.AsError(err)); err != nil {
				return err
			}
			replaced++
			if stopErr := c.stopOld(ctx, fmt.Sprint(agency.AsError(err).Details["daemon_version"])); agency.IsCode(stopErr, agency.CodePermissionDenied) {
				return err // a run must not replace the user's daemon
			} else if stopErr != nil {
				return stopErr
			}
		default:
			return err
		}
		if again && (c.met.Load() || agency.IsCode(err, agency.CodeDaemonLost)) {
			c.awaitReplacement(ctx)
		}
		if c.follows.Load() && c.met.Load() && c.AwaitNext != nil {
			if err := c.AwaitNext(ctx); err != nil {
				return err
			}
		}
		c.Close() // kept connections are to the daemon that went away
		if err := row.next(ctx, time.Since(began), err); err != nil {
			return err
		}
		if err := c.Start(ctx); err != nil && !errors.Is(err, ErrStartKilled) {
			return err
		}
	}
}

// replaceable returns nil when a daemon of another version, which refused a request with err, may
// be stopped for one of this version: no request would be lost, and the record would be readable.
func (c *Client) replaceable(err *agency.Error) error {
	requests, known := err.Details["requests"].(float64)
	schema, ok := err.Details["schema_version"].(float64)
	switch {
	case c.Schema == nil || !known || !ok:
		return err
	case int(schema) > c.Schema():
		return agency.Errorf(err.Code, "%s, which cannot read its record", err.Message).
			WithHint("install version %v again", err.Details["daemon_version"])
	case requests > 0:
		waits := "a request waits"
		if requests > 1 {
			waits = fmt.Sprintf("%.0f requests wait", requests)
		}
		return agency.Errorf(err.Code, "%s; %s for its answer", err.Message, waits).WithHint("%s", err.Hint)
	}
	return nil
}

// outdated returns the error for a client of the given version, whose daemon was replaced by one
// that does not understand it.
func outdated(err *agency.Error, version string) error {
	e := agency.Errorf(err.Code, "the daemon is now version %v, and this command is version %s, which cannot read its answers",
		err.Details["daemon_version"], version).WithHint("run the command again")
	e.Details = err.Details
	return e
}

// awaitReplacement gives the client that replaces a daemon the time to start the next one, of its
// own version: a client that waits must not be faster and start one of the old version.
func (c *Client) awaitReplacement(ctx context.Context) {
	if c.Holder == nil {
		return
	}
	for deadline := time.Now().Add(replaceWait); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if holder, err := c.Holder(); err != nil || !holder.Stopped() {
			return
		}
	}
}

// starting reports whether a daemon that does not answer may still be starting.
func (c *Client) starting() bool {
	if c.Holder == nil {
		return true
	}
	holder, err := c.Holder()
	return err != nil || holder.Doing == DoingStart && !holder.Suspended
}

// inARow limits how often a daemon that goes away is started again, in case the request itself
// makes it crash.
type inARow struct {
	timeout time.Duration
	times   int
	since   time.Time
}

// next returns nil when the daemon should be started again: at once the first time, later after a
// pause. When the timeout is over, it returns err, the error of the request, with the count. A
// daemon that ran for a while does not count as a failure.
func (r *inARow) next(ctx context.Context, after time.Duration, err error) error {
	if r.times == 0 || after >= lasted {
		r.times, r.since = 0, time.Now()
	}
	r.times++
	switch passed := time.Since(r.since); {
	case r.times == 1:
		return nil
	case passed >= r.timeout:
		e := agency.AsError(err)
		return agency.Errorf(e.Code, "the daemon went away %d times in %s: %w", r.times, duration.Text(passed.Round(time.Second)), err).WithHint("agency daemon logs")
	}
	select {
	case <-time.After(min(firstPause<<min(r.times-2, 10), longPause)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopOld stops a daemon of another version, and returns when it accepts no more requests: until
// then Start would find it running.
func (c *Client) stopOld(ctx context.Context, version string) error {
	old := NewClient(c.Socket, version, nil)
	defer old.Close()
	status, err := Call(ctx, old, StopDaemon, Empty{})
	switch {
	case agency.IsCode(err, agency.CodeDaemonConnectFailed), agency.IsCode(err, agency.CodeDaemonLost):
		return nil
	case agency.IsCode(err, agency.CodeDaemonVersion):
		return nil // another process has replaced it already
	case err != nil:
		return err
	}
	for deadline := time.Now().Add(stopWait); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		conn, err := socket.Dial(ctx, c.Socket)
		if err != nil {
			return ctx.Err()
		}
		_ = conn.Close()
		if errors.Is(syscall.Kill(status.PID, 0), syscall.ESRCH) {
			return nil // the listener is a new daemon, started by another process
		}
	}
	return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon (pid %d, version %s) was asked to stop but is still there", status.PID, version).
		WithHint("agency daemon logs")
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) do(r *http.Request) (*http.Response, error) {
	maps.Copy(r.Header, c.Header)
	r.Header.Set(VersionHeader, c.Version)
	if c.outlived.Load() {
		r.Header.Set(ShapeHeader, Shape(r.URL.Path))
	}
	if c.Trace != nil {
		r.Header.Set(TraceHeader, "1")
	}
	answer, err := c.http.Do(r)
	switch {
	case err == nil:
		if answer.Header.Get(VersionHeader) == c.Version {
			c.met.Store(true) // also when it answers that it is stopping
		}
		return answer, nil
	case r.Context().Err() != nil:
		return nil, c.orSilent(r.Context(), r.Context().Err())
	case refused(err):
		return nil, unwrapURL(err)
	case errors.Is(err, fs.ErrPermission):
		return nil, agency.Errorf(agency.CodePermissionDenied, "the daemon's socket %s belongs to another user", c.Socket).
			WithHint("set AGENCY_HOME to a folder of your own")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, agency.Errorf(agency.CodeDaemonConnectFailed, "%w on %s", ErrNoDaemon, c.Socket).WithHint("agency daemon start")
	default:
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return nil, agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon on %s cannot be reached: %w", c.Socket, op.Err).WithHint("agency daemon logs")
		}
		return nil, lost(unwrapURL(err))
	}
}

// refused reports whether this user cannot trust the socket.
func refused(err error) bool {
	e, ok := errors.AsType[*agency.Error](err)
	return ok && (e.Code == agency.CodePermissionDenied || e.Code == agency.CodeSocketPathInvalid)
}

// silent returns the error for a daemon that listens and does not answer.
func (c *Client) silent(why error) error {
	err := agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon on %s %w", c.Socket, why).
		WithHint("agency daemon logs; if it hangs and is not just starting, end its process: runs continue")
	if c.Holder == nil {
		return err
	}
	holder, lookErr := c.Holder()
	if lookErr != nil || !holder.Locked || holder.PID == 0 {
		return err
	}
	if holder.Suspended {
		return agency.Errorf(err.Code, "%w; it is process %d, which is suspended", err, holder.PID).
			WithHint("wake it up: kill -CONT %d; or end it: kill -9 %d   (runs continue)", holder.PID, holder.PID)
	}
	return agency.Errorf(err.Code, "%w; it is process %d", err, holder.PID).
		WithHint("agency daemon logs; if it hangs: kill -9 %d   (runs continue)", holder.PID)
}

// unwrapURL removes the made-up URL that net/http puts before its errors.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// readEnvelope decodes an answer into data, a pointer or nil, in one pass: a list of runs can be
// long.
func (c *Client) readEnvelope(answer *http.Response, data any) error {
	var body io.Reader = answer.Body
	switch whole := data.(type) {
	case **envelopeText:
		if c.Trace != nil {
			return c.encodeAnswer(answer, whole)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return unreadable(err)
		}
		printed := envelopeText(append(indent(make([]byte, 0, len(text)*3/2), text), '\n'))
		if bytes.HasPrefix(printed, []byte("{\n  \"ok\": true,")) {
			*whole = &printed
			return nil
		}
		body, data = bytes.NewReader(text), nil
	case **ListRunsResponse:
		var text strings.Builder // whose text is not copied
		if _, err := io.Copy(&text, body); err != nil {
			return unreadable(err)
		}
		var spans []agency.Span
		if rows := new(ListRunsResponse); readRows(text.String(), rows, &spans) {
			c.Trace.Add(spans...)
			*whole = rows
			return nil
		}
		body = strings.NewReader(text.String())
	}
	env := Envelope{Data: data}
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&env); err != nil {
		return unreadable(err)
	}
	c.Trace.Add(env.Trace...)
	return env.Err()
}

// encodeAnswer is readEnvelope for an answer that holds the steps of the request too, which are not
// printed.
func (c *Client) encodeAnswer(answer *http.Response, to **envelopeText) error {
	var data json.RawMessage
	if err := c.readEnvelope(answer, &data); err != nil {
		return err
	}
	var text bytes.Buffer
	err := Encode(&text, Success(data))
	*to = (*envelopeText)(new(text.Bytes()))
	return err
}

// How long an operation that changes nothing may take: one that only reads, and one that has to
// look at many files first.
const (
	readTimeout = 15 * time.Second
	lookTimeout = 10 * time.Minute
)

// limit returns how long a client waits for the answer to a request; 0 means without a limit, when
// the daemon applies the limit.
func (k Kind) limit(req any) time.Duration {
	_, own := req.(limited)
	switch {
	case k == Reads:
		return readTimeout
	case k == Waits && !own:
		return lookTimeout
	default:
		return 0
	}
}

// timeout returns how long a request keeps starting daemons that go away: its own time limit, or
// else enough for a few starts.
func (k Kind) timeout(req any) time.Duration {
	const few = time.Minute
	if l, ok := req.(limited); ok && l.time() > 0 {
		return l.time()
	}
	if k == Waits {
		return lookTimeout
	}
	return few
}

// replaceWait is how long a client waits for others to start the next daemon after a stop.
const replaceWait = 2 * time.Second

// mostReplaced is how many daemons of another version a request replaces: a program of that version
// that asks at the same moment may start another one.
const mostReplaced = 3

// stopWait is how long a daemon that was asked to stop may keep accepting requests.
const stopWait = 10 * time.Second

// Why there is no answer, wrapped in E_DAEMON_CONNECT_FAILED.
var (
	// ErrSilent means that a daemon listens but accepts no requests.
	ErrSilent = errors.New("has not answered")
	// ErrNoDaemon means that no process listens. A daemon that is starting or stopping does not
	// listen either.
	ErrNoDaemon = errors.New("no daemon listens")
	// ErrStartKilled means that a signal ended a daemon while it started. It is wrapped in
	// E_DAEMON_START_FAILED; another daemon may start.
	ErrStartKilled = errors.New("was killed while it started")
)

// lost returns the error for a request that was sent but not answered: it may have been carried
// out.
func lost(err error) error {
	if errors.Is(err, ErrSilent) {
		return err // the daemon is still there
	}
	return agency.Errorf(agency.CodeDaemonLost, "the daemon went away before it answered, and may have done what was asked: %w", err).
		WithHint("see whether it was done: agency ls")
}

func unreadable(err error) error {
	return agency.Errorf(agency.CodeDaemonLost, "the daemon's answer cannot be read: %w", err).WithHint("agency daemon logs")
}

// get opens a stream; the caller closes its body.
func (c *Client) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	var answer *http.Response
	timeout := Reads.timeout(nil)
	if c.met.Load() {
		timeout = 0 // the reader of the stream limits how often it is opened again
	}
	err := c.withDaemon(ctx, true, timeout, func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agency"+path+"?"+query.Encode(), nil)
		if err != nil {
			return fmt.Errorf("make request of %s: %w", path, err)
		}
		live, cancel := c.whileAlive(ctx)
		if answer, err = c.do(r.WithContext(live)); err != nil {
			cancel()
			return err
		}
		answer.Body = &streamBody{answer.Body, c, live, cancel}
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		defer func() { _ = answer.Body.Close() }()
		return c.readEnvelope(answer, nil)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}
