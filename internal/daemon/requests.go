package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/policy"
	"agency/internal/trace"
)

// requests decides which requests the daemon answers: those of a client of its version, in the
// strict form of their operation, that the policy allows their sender.
type requests struct {
	mux        *http.ServeMux
	version    string
	policy     *policy.Policy
	log        *slog.Logger
	isStopping func() bool

	inHand atomic.Int64 // requests that a stop could lose
	turns  *turns
}

func newRequests(d *Daemon) *requests {
	return &requests{mux: http.NewServeMux(), version: d.Version, policy: d.policy, log: d.Log, isStopping: d.isStopping, turns: newTurns()}
}

// handle serves an operation with do.
func handle[Req, Resp any](rs *requests, op api.Operation[Req, Resp], do func(context.Context, Req) (Resp, error)) {
	rs.serve(op.Describe(), func(ctx context.Context, req any) (any, error) { return do(ctx, *req.(*Req)) })
}

// serve serves one operation: version check, strict decoding, the work, the envelope. do
// gets a pointer to a request. It knows no types, so that the program holds this code once.
func (rs *requests) serve(op api.Description, do func(ctx context.Context, req any) (any, error)) {
	rs.mux.HandleFunc("POST "+op.Path(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, rs.version)
		if err := rs.checkVersion(r); err != nil {
			reply(w, nil, err)
			return
		}
		if op.Kind == api.Acts {
			rs.inHand.Add(1)
			defer rs.inHand.Add(-1)
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
		if err != nil {
			reply(w, nil, agency.Errorf(agency.CodeUsage, "the request cannot be read: %w", err))
			return
		}
		taken(w)
		req := reflect.New(op.Request).Interface()
		if err := api.Decode(body, req); err != nil {
			reply(w, nil, agency.Errorf(agency.CodeUsage, "the request of %s is not valid: %w", op.Name, err))
			return
		}
		ctx := withCaller(r)
		if r.Header.Get(api.TraceHeader) != "" {
			ctx = trace.With(ctx, trace.New("daemon"))
		}
		end := trace.Begin(ctx, op.Name)
		worked := func() {}
		if r.Header.Get(api.InsideHeader) != "" && takesTurns(op.Name) {
			tree, err := rs.policy.Tree(ctx)
			if err != nil {
				reply(w, nil, err)
				return
			}
			var answered func()
			var ok bool
			if worked, answered, ok = rs.turns.take(ctx, tree); !ok {
				return // the client is gone
			}
			defer answered()
		}
		var resp any
		if err = rs.policy.Allow(ctx, op.Name, req); err == nil {
			resp, err = do(ctx, req)
		}
		worked()
		if err != nil && rs.isStopping() {
			err = cutOff(op.Kind, err)
		}
		if err != nil && r.Context().Err() == nil {
			logFailure(rs.log, &op, err)
		}
		end()
		if r.Header.Get(api.InsideHeader) != "" {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sandboxReads)) // a test's writer has no deadline
		}
		replyTraced(w, resp, err, trace.From(ctx).Spans())
	})
}

// stream serves one stream: version check, media type of the answer, which reply replaces for an
// error, and the answer.
func (rs *requests) stream(s *api.Stream, serve http.HandlerFunc) {
	path, media := s.Path, s.Media
	rs.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, rs.version)
		if err := rs.checkVersion(r); err != nil {
			reply(w, nil, err)
			return
		}
		if path == api.SessionUpdatesPath {
			rs.inHand.Add(1)
			defer rs.inHand.Add(-1)
		}
		w.Header().Set("Content-Type", media)
		serve(w, r)
	})
}

// cutOff returns the error of an operation that failed while the daemon stopped. The next daemon can
// answer one that only waits, whatever its error was. Of another one, only a cancelled step tells
// that the stop cut it off.
func cutOff(kind api.Kind, err error) error {
	switch {
	case kind == api.Waits:
		return errStopping()
	case errors.Is(err, context.Canceled):
		return agency.Errorf(agency.CodeDaemonLost, "the daemon stopped before it had finished, and may have done what was asked").
			WithHint("see whether it was done, and ask again")
	default:
		return err
	}
}

// logFailure logs an error that is a defect of agency, or that a client could not expect.
func logFailure(log *slog.Logger, op *api.Description, err error) {
	switch code := agency.AsError(err).Code; {
	case code == agency.CodeInternal:
		log.Error("operation failed", "operation", op.Name, "err", err)
	case !op.Gives(code):
		log.Error("unlisted error", "operation", op.Name, "code", code, "err", err)
	}
}

// checkVersion refuses a client of another version, unless it sends the shape of what it asks for
// and this daemon has the same. A client that sends no version, such as curl, is served. The error
// holds what the client must know to replace the daemon: the requests that would be lost, and the
// version of the record. A request that only reads is not lost: its client asks again.
func (rs *requests) checkVersion(r *http.Request) error {
	theirs := r.Header.Get(api.VersionHeader)
	shape := r.Header.Get(api.ShapeHeader)
	if theirs == "" || theirs == rs.version || shape != "" && shape == api.Shape(r.URL.Path) {
		return nil
	}
	return agency.Errorf(agency.CodeDaemonVersion, "the daemon is version %s and this program is %s", rs.version, theirs).
		WithDetail("daemon_version", rs.version).
		WithDetail("requests", rs.inHand.Load()).
		WithDetail("schema_version", SchemaVersion()).
		WithHint("stop it, and runs continue: agency daemon stop")
}
