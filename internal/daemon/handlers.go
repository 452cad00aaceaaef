package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"

	"agency"
	"agency/internal/api"
	"agency/internal/trace"
)

// requestLimit is the largest request body, in bytes: a prompt, an environment, and space to escape
// them.
const requestLimit = 6*agency.PromptLimit + 4<<20

// handler serves all operations and streams.
func (d *Daemon) handler() http.Handler { return d.recovered(d.routes()) }

// routes returns the handlers of all operations of the table and of the streams.
func (d *Daemon) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle(d, mux, api.CreateRun, d.createRun)
	handle(d, mux, api.ListRuns, d.listRuns)
	handle(d, mux, api.ShowRun, d.showRun)
	handle(d, mux, api.ExplainRun, d.explainRun)
	handle(d, mux, api.AnswerRun, d.answerRun)
	handle(d, mux, api.ShowOutput, d.showOutput)
	handle(d, mux, api.DiffRun, d.diffRun)
	handle(d, mux, api.SendInput, d.sendInput)
	handle(d, mux, api.StopRun, d.stopRun)
	handle(d, mux, api.ResumeRun, d.resumeRun)
	handle(d, mux, api.RemoveRun, d.removeRun)
	handle(d, mux, api.TakeSnapshot, d.takeSnapshot)
	handle(d, mux, api.ListSnapshots, d.listSnapshots)
	handle(d, mux, api.ShowSnapshot, d.showSnapshot)
	handle(d, mux, api.RestoreSnapshot, d.restoreSnapshot)
	handle(d, mux, api.CollectRuns, d.collectRuns)
	handle(d, mux, api.CheckDatabase, d.checkDatabase)
	handle(d, mux, api.BackupDatabase, d.backupDatabase)
	handle(d, mux, api.InitRepo, d.initRepo)
	handle(d, mux, api.ShowTrust, d.showTrust)
	handle(d, mux, api.GrantTrust, d.grantTrust)
	handle(d, mux, api.RevokeTrust, d.revokeTrust)
	handle(d, mux, api.ListAlerts, d.listAlerts)
	handle(d, mux, api.AckAlerts, d.ackAlerts)
	handle(d, mux, api.SnoozeAlerts, d.snoozeAlerts)
	handle(d, mux, api.ExplainWatchdog, d.explainWatchdog)
	handle(d, mux, api.StartTimer, d.startTimer)
	handle(d, mux, api.StopTimers, d.stopTimers)
	handle(d, mux, api.ListTimers, d.listTimers)
	handle(d, mux, api.SendMessage, d.sendMessage)
	handle(d, mux, api.PollMessages, d.pollMessages)
	handle(d, mux, api.AckMessages, d.ackMessages)
	handle(d, mux, api.ListMessages, d.listMessages)
	handle(d, mux, api.ChangeTags, d.changeTags)
	handle(d, mux, api.FlagRun, d.flagRun)
	handle(d, mux, api.UnflagRun, d.unflagRun)
	handle(d, mux, api.TestNotify, d.testNotify)
	handle(d, mux, api.ListChannels, d.listChannels)
	handle(d, mux, api.WaitRuns, d.waitRuns)
	handle(d, mux, api.AttachRun, d.attachRun)
	handle(d, mux, api.ListEvents, d.listEvents)
	handle(d, mux, api.Doctor, d.doctor)
	handle(d, mux, api.DaemonStatus, d.status)
	handle(d, mux, api.StopDaemon, d.stopDaemon)
	handle(d, mux, api.StartSession, d.sessions.Start)
	handle(d, mux, api.PauseSession, d.sessions.Pause)
	handle(d, mux, api.ResumeSession, d.sessions.Resume)
	handle(d, mux, api.CancelSession, d.sessions.Cancel)
	handle(d, mux, api.RetrySession, d.sessions.Retry)
	handle(d, mux, api.WaitSession, d.waitSession)
	handle(d, mux, api.PlanSession, d.sessions.Plan)
	handle(d, mux, api.CreateSession, d.sessions.Create)
	handle(d, mux, api.UpdateSession, d.sessions.Update)
	handle(d, mux, api.ListSessions, d.sessions.List)
	handle(d, mux, api.ShowSession, d.sessions.Show)
	handle(d, mux, api.RemoveSessions, d.sessions.Remove)
	mux.HandleFunc("GET "+api.AlivePath, func(w http.ResponseWriter, r *http.Request) { reply(w, api.Empty{}, d.checkVersion(r)) })
	mux.HandleFunc("GET "+api.SessionUpdatesPath, d.streamUpdates)
	mux.HandleFunc("GET "+api.EventsPath, d.streamEvents)
	mux.HandleFunc("GET "+api.LogsPath, d.streamLogs)
	mux.HandleFunc("GET "+api.WrapperPath, d.serveWrapper)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "there is no %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// handle serves an operation with do.
func handle[Req, Resp any](d *Daemon, mux *http.ServeMux, op api.Operation[Req, Resp], do func(context.Context, Req) (Resp, error)) {
	d.serveOperation(mux, op.Describe(), func(ctx context.Context, req any) (any, error) { return do(ctx, *req.(*Req)) })
}

// serveOperation serves one operation: version check, strict decoding, the work, the envelope. do
// gets a pointer to a request. It knows no types, so that the program holds this code once.
func (d *Daemon) serveOperation(mux *http.ServeMux, op api.Description, do func(ctx context.Context, req any) (any, error)) {
	mux.HandleFunc("POST "+op.Path(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, d.Version)
		if err := d.checkVersion(r); err != nil {
			reply(w, nil, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
		if err != nil {
			reply(w, nil, agency.Errorf(agency.CodeUsage, "the request cannot be read: %w", err))
			return
		}
		taken(w)
		req := reflect.New(op.Request).Interface()
		if err := api.Decode(body, req); err != nil {
			reply(w, nil, agency.Errorf(agency.CodeUsage, "the request of %s is not right: %w", op.Name, err))
			return
		}
		ctx := withCaller(r)
		if r.Header.Get(api.TraceHeader) != "" {
			ctx = trace.With(ctx, trace.New("daemon"))
		}
		end := trace.Begin(ctx, op.Name)
		var resp any
		if err = d.policy.Allow(ctx, op.Name, req); err == nil {
			resp, err = do(ctx, req)
		}
		if err != nil && op.Kind == api.Waits && d.isStopping() {
			err = errStopping() // whatever the error was: the next daemon can answer
		}
		if err != nil && r.Context().Err() == nil {
			logFailure(d.Log, &op, err)
		}
		end()
		replyTraced(w, resp, err, trace.From(ctx).Spans())
	})
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

// checkVersion refuses a client of another version: shapes may differ. A client that sends no
// version, such as curl, is served. The error reports whether the daemon is idle, so that the
// client may replace it.
func (d *Daemon) checkVersion(r *http.Request) error {
	theirs := r.Header.Get(api.VersionHeader)
	if theirs == "" || theirs == d.Version {
		return nil
	}
	return agency.Errorf(agency.CodeDaemonVersion, "the daemon is version %s and this program is %s", d.Version, theirs).
		WithDetail("daemon_version", d.Version).
		WithDetail("live_runs", d.sup.Observer.LiveRuns()).
		WithHint("agency daemon stop && agency daemon start   (runs that are under way go on meanwhile)")
}

// reply sends data, or the error if there is one.
func reply(w http.ResponseWriter, data any, err error) { replyTraced(w, data, err, nil) }

// replyTraced is reply with the steps of the request.
func replyTraced(w http.ResponseWriter, data any, err error, spans []agency.Span) {
	code := http.StatusOK
	var body bytes.Buffer
	if err == nil {
		answer := api.Success(data)
		answer.Trace = spans
		err = api.EncodeLine(&body, answer)
	}
	if err != nil {
		failure := api.Failure(err)
		failure.Trace = spans
		code = failure.Error.Code.HTTPStatus()
		body.Reset()
		_ = api.EncodeLine(&body, failure)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // a client that has disconnected needs no answer
}

// recovered turns a panic in one request into an error for the client and a line in the log.
func (d *Daemon) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			defect := recover()
			if defect == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(defect) // an answer was cut off on purpose
			}
			if defect != nil {
				d.Log.Error("request failed", "path", r.URL.Path, "defect", defect, "stack", string(debug.Stack()))
				reply(w, nil, agency.Errorf(agency.CodeInternal, "the daemon made a mistake with %s", r.URL.Path).WithHint("agency daemon logs"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (d *Daemon) status(ctx context.Context, _ api.Empty) (api.DaemonStatusResponse, error) {
	seq, err := d.store.LastSeq(ctx)
	if err != nil {
		return api.DaemonStatusResponse{}, err
	}
	return api.DaemonStatusResponse{
		PID: os.Getpid(), Version: d.Version, StartedAt: d.started.UTC(),
		Socket: d.Config.Socket, Home: d.Config.Home, Log: LogPath(d.Config.Home),
		LiveRuns: d.sup.Observer.LiveRuns(), LastSeq: seq, Config: d.active.state(d.Config),
	}, nil
}

func (d *Daemon) stopDaemon(ctx context.Context, _ api.Empty) (api.DaemonStatusResponse, error) {
	status, err := d.status(ctx, api.Empty{})
	d.stop()
	return status, err
}

// errStopping returns the error that makes a client ask the next daemon.
func errStopping() *agency.Error {
	return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon is stopping")
}

// untilStop returns a context that ends when the daemon stops too, for requests that would delay
// the stop.
func (d *Daemon) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-d.stopping:
			cancel(errStopping())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
