package daemon

import (
	"bytes"
	"context"
	"errors"
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

// routes returns the handlers of all operations of the table and of the streams.
func (d *Daemon) routes() *http.ServeMux {
	mux := http.NewServeMux()
	routeRuns(d, mux)
	routeLandings(d, mux)
	routeSessions(d, mux)
	routeAlerts(d, mux)
	routeMaintenance(d, mux)
	routeStreams(d, mux)
	wrappers := &wrappers{accepts: d.sup.Wrappers, tmux: d.tmux, log: d.Log}
	mux.HandleFunc("GET "+api.WrapperPath, wrappers.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "there is no %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// routeRuns serves the operations on runs, their snapshots and their checks.
func routeRuns(d *Daemon, mux *http.ServeMux) {
	runs := runOperations{d.sup, d.policy, d.Log, d.clock.Now, d.untilStop, d.store, d.verifier, d.lander}
	handle(d, mux, api.CreateRun, runs.createRun)
	d.serveOperation(mux, api.ListRuns.Describe(), runs.listRuns)
	handle(d, mux, api.ShowRun, runs.showRun)
	handle(d, mux, api.ExplainRun, runs.explainRun)
	handle(d, mux, api.AnswerRun, runs.answerRun)
	handle(d, mux, api.AllowHost, runs.allowHost)
	handle(d, mux, api.ShowOutput, runs.showOutput)
	handle(d, mux, api.ShowScreen, runs.showScreen)
	handle(d, mux, api.DiffRun, runs.diffRun)
	handle(d, mux, api.PressKeys, runs.pressKeys)
	handle(d, mux, api.SendInput, runs.sendInput)
	handle(d, mux, api.InterruptRun, runs.interruptRun)
	handle(d, mux, api.StopRun, runs.stopRun)
	handle(d, mux, api.ResumeRun, runs.resumeRun)
	handle(d, mux, api.RemoveRun, runs.removeRun)
	handle(d, mux, api.TakeSnapshot, runs.takeSnapshot)
	handle(d, mux, api.ListSnapshots, runs.listSnapshots)
	handle(d, mux, api.ShowSnapshot, runs.showSnapshot)
	handle(d, mux, api.RestoreSnapshot, runs.restoreSnapshot)
	handle(d, mux, api.CollectRuns, runs.collectRuns)
	handle(d, mux, api.ListStandbys, runs.listStandbys)
	handle(d, mux, api.ChangeTags, runs.changeTags)
	handle(d, mux, api.FlagRun, runs.flagRun)
	handle(d, mux, api.UnflagRun, runs.unflagRun)
	handle(d, mux, api.WaitRuns, runs.waitRuns)
	handle(d, mux, api.AttachRun, runs.attachRun)
	checks := verifyOperations{d.verifier, d.sup, d.policy, d.untilStop}
	handle(d, mux, api.VerifyRun, checks.verifyRun)
	handle(d, mux, api.ShowCheck, checks.showCheck)
}

// routeLandings serves the operations on landings, queues and pull requests.
func routeLandings(d *Daemon, mux *http.ServeMux) {
	landings := landingOperations{d.sup, d.lander, d.verifier, d.policy, d.untilStop, d.landings}
	handle(d, mux, api.ReviewRun, landings.reviewRun)
	handle(d, mux, api.AddComments, landings.addComments)
	handle(d, mux, api.DiscardComments, landings.discardComments)
	handle(d, mux, api.SendComments, landings.sendComments)
	handle(d, mux, api.MergeRun, landings.mergeRun)
	handle(d, mux, api.ReviewSession, landings.reviewSession)
	handle(d, mux, api.MergeSession, landings.mergeSession)
	handle(d, mux, api.AbandonRun, landings.abandonRun)
	queues := queueOperations{d.sup, d.store, d.queuer, d.policy, d.landings}
	handle(d, mux, api.AddToQueue, queues.add)
	handle(d, mux, api.ListQueue, queues.list)
	handle(d, mux, api.ChangeQueue, queues.change)
	handle(d, mux, api.PauseQueue, queues.pause)
	forge := forgeOperations{d.sup, d.lander, d.store}
	handle(d, mux, api.PlanPush, forge.planPush)
	handle(d, mux, api.RecordPush, forge.recordPush)
	handle(d, mux, api.PlanPR, forge.planPR)
	handle(d, mux, api.RecordPR, forge.recordPR)
}

// routeSessions serves the operations on sessions.
func routeSessions(d *Daemon, mux *http.ServeMux) {
	handle(d, mux, api.StartSession, d.sessions.Start)
	handle(d, mux, api.PauseSession, d.sessions.Pause)
	handle(d, mux, api.ResumeSession, d.sessions.Resume)
	handle(d, mux, api.CancelSession, d.sessions.Cancel)
	handle(d, mux, api.RetrySession, d.sessions.Retry)
	handle(d, mux, api.PlanSession, d.sessions.Plan)
	handle(d, mux, api.CreateSession, d.sessions.Create)
	handle(d, mux, api.UpdateSession, d.sessions.Update)
	handle(d, mux, api.ListSessions, d.sessions.List)
	handle(d, mux, api.ShowSession, d.sessions.Show)
	handle(d, mux, api.RemoveSessions, d.sessions.Remove)
	handle(d, mux, api.WaitSession, func(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
		ctx, cancel := d.untilStop(ctx)
		defer cancel()
		return d.sessions.Wait(ctx, req)
	})
}

// routeAlerts serves the operations on alerts, timers, messages and channels.
func routeAlerts(d *Daemon, mux *http.ServeMux) {
	alerts := alertOperations{d.sup, d.store, d.git.Repos, d.dog, d.timers, d.policy, d.clock.Now}
	handle(d, mux, api.ListAlerts, alerts.listAlerts)
	handle(d, mux, api.AckAlerts, alerts.ackAlerts)
	handle(d, mux, api.SnoozeAlerts, alerts.snoozeAlerts)
	handle(d, mux, api.ExplainWatchdog, alerts.explainWatchdog)
	handle(d, mux, api.StartTimer, alerts.startTimer)
	handle(d, mux, api.StopTimers, alerts.stopTimers)
	handle(d, mux, api.ListTimers, alerts.listTimers)
	messages := messageOperations{d.sup, d.store, d.policy, d.untilStop, d.isStopping}
	handle(d, mux, api.SendMessage, messages.sendMessage)
	handle(d, mux, api.PollMessages, messages.pollMessages)
	handle(d, mux, api.AckMessages, messages.ackMessages)
	handle(d, mux, api.ListMessages, messages.listMessages)
	channels := channelOperations{d.store, d.policy, d.notifier.Load, d.active.config, d.reload, d.untilStop, d.clock.Now}
	handle(d, mux, api.TestNotify, channels.testNotify)
	handle(d, mux, api.ListChannels, channels.listChannels)
}

// routeMaintenance serves the operations on repositories, the record and the daemon itself.
func routeMaintenance(d *Daemon, mux *http.ServeMux) {
	projects := projectOperations{d.sup, d.sandbox, d.git, d.store, d.verifier.Trees}
	handle(d, mux, api.InitRepo, projects.initRepo)
	handle(d, mux, api.LeaveRepos, projects.leaveRepos)
	handle(d, mux, api.ShowTrust, projects.showTrust)
	handle(d, mux, api.GrantTrust, projects.grantTrust)
	handle(d, mux, api.RevokeTrust, projects.revokeTrust)
	handle(d, mux, api.ListRefs, projects.listRefs)
	record := recordOperations{d.sup, d.store, d.Config, d.clock.Now}
	handle(d, mux, api.CheckDatabase, record.checkDatabase)
	handle(d, mux, api.BackupDatabase, record.backupDatabase)
	handle(d, mux, api.ListEvents, record.listEvents)
	handle(d, mux, api.Doctor, d.doctor)
	handle(d, mux, api.DaemonStatus, d.status)
	handle(d, mux, api.StopDaemon, d.stopDaemon)
}

// routeStreams serves the streams.
func routeStreams(d *Daemon, mux *http.ServeMux) {
	streams := streams{d.sup, d.store, d.sched, d.finder, d.policy, d.Log, d.untilStop, d.isStopping}
	serving := map[string]http.HandlerFunc{
		api.EventsPath: streams.streamEvents, api.LogsPath: streams.streamLogs, api.SessionUpdatesPath: streams.streamUpdates,
		api.AlivePath: func(w http.ResponseWriter, _ *http.Request) { reply(w, api.Empty{}, nil) },
	}
	for _, s := range api.Streams() {
		mux.HandleFunc("GET "+s.Path, d.serveStream(&s, serving[s.Path]))
	}
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
		if op.Kind == api.Acts {
			d.inHand.Add(1)
			defer d.inHand.Add(-1)
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
		if err != nil && d.isStopping() {
			err = cutOff(op.Kind, err)
		}
		if err != nil && r.Context().Err() == nil {
			logFailure(d.Log, &op, err)
		}
		end()
		replyTraced(w, resp, err, trace.From(ctx).Spans())
	})
}

// serveStream returns a handler that checks the version and sets the media type of the answer,
// which reply replaces for an error.
func (d *Daemon) serveStream(s *api.Stream, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, d.Version)
		if err := d.checkVersion(r); err != nil {
			reply(w, nil, err)
			return
		}
		if s.Path == api.SessionUpdatesPath {
			d.inHand.Add(1)
			defer d.inHand.Add(-1)
		}
		w.Header().Set("Content-Type", s.Media)
		serve(w, r)
	}
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
func (d *Daemon) checkVersion(r *http.Request) error {
	theirs := r.Header.Get(api.VersionHeader)
	shape := r.Header.Get(api.ShapeHeader)
	if theirs == "" || theirs == d.Version || shape != "" && shape == api.Shape(r.URL.Path) {
		return nil
	}
	return agency.Errorf(agency.CodeDaemonVersion, "the daemon is version %s and this program is %s", d.Version, theirs).
		WithDetail("daemon_version", d.Version).
		WithDetail("requests", d.inHand.Load()).
		WithDetail("schema_version", SchemaVersion()).
		WithHint("stop it, and runs continue: agency daemon stop")
}

// reply sends data, or the error if there is one.
func reply(w http.ResponseWriter, data any, err error) { replyTraced(w, data, err, nil) }

// replyTraced is reply with the steps of the request.
func replyTraced(w http.ResponseWriter, data any, err error, spans []agency.Span) {
	if rows, ok := data.(*api.RunRows); ok && err == nil {
		w.Header().Set("Content-Type", "application/json")
		if rows.WriteTo(w, spans) != nil {
			panic(http.ErrAbortHandler) // the client, if it is there, sees that the answer is cut off
		}
		return
	}
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
func recovered(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			defect := recover()
			if defect == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(defect) // an answer was cut off on purpose
			}
			if defect != nil {
				log.Error("request failed", "path", r.URL.Path, "defect", defect, "stack", string(debug.Stack()))
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
	d.stopAsked.Store(true)
	d.stop()
	return status, err
}

// errStopping returns the error that makes a client ask the next daemon.
func errStopping() *agency.Error {
	return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon is stopping")
}

// untilStop is Daemon.untilStop.
type untilStop func(ctx context.Context) (context.Context, context.CancelFunc)

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
