package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"

	"agency"
	"agency/internal/api"
)

// requestLimit is the largest request body, in bytes: a prompt, an environment, and space to escape
// them.
const requestLimit = 6*agency.PromptLimit + 4<<20

// routes returns the handlers of all operations of the table and of the streams.
func (d *Daemon) routes() *http.ServeMux {
	rs := newRequests(d)
	routeRuns(d, rs)
	routeLandings(d, rs)
	routeSessions(d, rs)
	routeAlerts(d, rs)
	routeMaintenance(d, rs)
	routeStreams(d, rs)
	wrappers := &wrappers{accepts: d.sup.Wrappers, tmux: d.tmux, log: d.Log}
	rs.mux.HandleFunc("GET "+api.WrapperPath, wrappers.serve)
	rs.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "there is no %s %s", r.Method, r.URL.Path))
	})
	return rs.mux
}

// routeRuns serves the operations on runs, their snapshots and their checks.
func routeRuns(d *Daemon, rs *requests) {
	runs := runOperations{d.sup, d.policy, d.Log, d.clock.Now, d.untilStop, d.store, d.verifier, d.lander}
	handle(rs, api.CreateRun, runs.createRun)
	rs.serve(api.ListRuns.Describe(), runs.listRuns)
	handle(rs, api.ShowRun, runs.showRun)
	handle(rs, api.ExplainRun, runs.explainRun)
	handle(rs, api.AnswerRun, runs.answerRun)
	handle(rs, api.AllowHost, runs.allowHost)
	handle(rs, api.ShowOutput, runs.showOutput)
	handle(rs, api.ShowScreen, runs.showScreen)
	handle(rs, api.DiffRun, runs.diffRun)
	handle(rs, api.PressKeys, runs.pressKeys)
	handle(rs, api.SendInput, runs.sendInput)
	handle(rs, api.InterruptRun, runs.interruptRun)
	handle(rs, api.SetRun, runs.setRun)
	handle(rs, api.Unsend, runs.takeBack)
	handle(rs, api.StopRun, runs.stopRun)
	handle(rs, api.ResumeRun, runs.resumeRun)
	handle(rs, api.RemoveRun, runs.removeRun)
	handle(rs, api.TakeSnapshot, runs.takeSnapshot)
	handle(rs, api.ListSnapshots, runs.listSnapshots)
	handle(rs, api.ShowSnapshot, runs.showSnapshot)
	handle(rs, api.RestoreSnapshot, runs.restoreSnapshot)
	handle(rs, api.CollectRuns, runs.collectRuns)
	handle(rs, api.ListStandbys, runs.listStandbys)
	handle(rs, api.ChangeTags, runs.changeTags)
	handle(rs, api.FlagRun, runs.flagRun)
	handle(rs, api.UnflagRun, runs.unflagRun)
	handle(rs, api.WaitRuns, runs.waitRuns)
	handle(rs, api.AttachRun, runs.attachRun)
	handle(rs, api.JoinRun, runs.joinRun)
	checks := verifyOperations{d.verifier, d.sup, d.policy, d.untilStop}
	handle(rs, api.VerifyRun, checks.verifyRun)
	handle(rs, api.ShowCheck, checks.showCheck)
}

// routeLandings serves the operations on landings, queues and pull requests.
func routeLandings(d *Daemon, rs *requests) {
	landings := landingOperations{d.sup, d.lander, d.verifier, d.policy, d.untilStop, d.landings}
	handle(rs, api.ReviewRun, landings.reviewRun)
	handle(rs, api.AddComments, landings.addComments)
	handle(rs, api.DiscardComments, landings.discardComments)
	handle(rs, api.SendComments, landings.sendComments)
	handle(rs, api.MarkReviewed, landings.markReviewed)
	handle(rs, api.MergeRun, landings.mergeRun)
	handle(rs, api.ReviewSession, landings.reviewSession)
	handle(rs, api.MergeSession, landings.mergeSession)
	handle(rs, api.AbandonRun, landings.abandonRun)
	queues := queueOperations{d.sup, d.store, d.queuer, d.policy, d.landings}
	handle(rs, api.AddToQueue, queues.add)
	handle(rs, api.ListQueue, queues.list)
	handle(rs, api.ChangeQueue, queues.change)
	handle(rs, api.PauseQueue, queues.pause)
	forge := forgeOperations{d.sup, d.lander, d.store}
	handle(rs, api.PlanPush, forge.planPush)
	handle(rs, api.RecordPush, forge.recordPush)
	handle(rs, api.PlanPR, forge.planPR)
	handle(rs, api.RecordPR, forge.recordPR)
}

// routeSessions serves the operations on sessions.
func routeSessions(d *Daemon, rs *requests) {
	handle(rs, api.StartSession, d.sessions.Start)
	handle(rs, api.PauseSession, d.sessions.Pause)
	handle(rs, api.ResumeSession, d.sessions.Resume)
	handle(rs, api.CancelSession, d.sessions.Cancel)
	handle(rs, api.RetrySession, d.sessions.Retry)
	handle(rs, api.PlanSession, d.sessions.Plan)
	handle(rs, api.CreateSession, d.sessions.Create)
	handle(rs, api.UpdateSession, d.sessions.Update)
	handle(rs, api.ListSessions, d.sessions.List)
	handle(rs, api.ShowSession, d.sessions.Show)
	handle(rs, api.RemoveSessions, d.sessions.Remove)
	handle(rs, api.WaitSession, func(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
		ctx, cancel := d.untilStop(ctx)
		defer cancel()
		return d.sessions.Wait(ctx, req)
	})
}

// routeAlerts serves the operations on alerts, timers, messages and channels.
func routeAlerts(d *Daemon, rs *requests) {
	alerts := alertOperations{d.sup, d.store, d.git.Repos, d.dog, d.timers, d.policy, d.clock.Now}
	handle(rs, api.ListAlerts, alerts.listAlerts)
	handle(rs, api.AckAlerts, alerts.ackAlerts)
	handle(rs, api.SnoozeAlerts, alerts.snoozeAlerts)
	handle(rs, api.ExplainWatchdog, alerts.explainWatchdog)
	handle(rs, api.StartTimer, alerts.startTimer)
	handle(rs, api.StopTimers, alerts.stopTimers)
	handle(rs, api.ListTimers, alerts.listTimers)
	messages := messageOperations{d.sup, d.store, d.policy, d.untilStop, d.isStopping}
	handle(rs, api.SendMessage, messages.sendMessage)
	handle(rs, api.PollMessages, messages.pollMessages)
	handle(rs, api.AckMessages, messages.ackMessages)
	handle(rs, api.ListMessages, messages.listMessages)
	channels := channelOperations{d.store, d.policy, d.notifier.Load, d.active.config, d.reload, d.untilStop, d.clock.Now}
	handle(rs, api.TestNotify, channels.testNotify)
	handle(rs, api.ListChannels, channels.listChannels)
}

// routeMaintenance serves the operations on repositories, the record and the daemon itself.
func routeMaintenance(d *Daemon, rs *requests) {
	projects := projectOperations{d.sup, d.sandbox, d.git, d.store, d.verifier.Trees}
	handle(rs, api.InitRepo, projects.initRepo)
	handle(rs, api.LeaveRepos, projects.leaveRepos)
	handle(rs, api.ShowTrust, projects.showTrust)
	handle(rs, api.GrantTrust, projects.grantTrust)
	handle(rs, api.RevokeTrust, projects.revokeTrust)
	handle(rs, api.ListRefs, projects.listRefs)
	record := recordOperations{d.sup, d.store, d.Config, d.clock.Now}
	handle(rs, api.CheckDatabase, record.checkDatabase)
	handle(rs, api.BackupDatabase, record.backupDatabase)
	handle(rs, api.ListEvents, record.listEvents)
	handle(rs, api.Doctor, d.doctor)
	handle(rs, api.DaemonStatus, d.status)
	handle(rs, api.StopDaemon, d.stopDaemon)
}

// routeStreams serves the streams.
func routeStreams(d *Daemon, rs *requests) {
	streams := streams{d.sup, d.store, d.sched, d.finder, d.policy, d.Log, d.untilStop, d.isStopping}
	serving := map[string]http.HandlerFunc{
		api.EventsPath: streams.streamEvents, api.LogsPath: streams.streamLogs, api.SessionUpdatesPath: streams.streamUpdates,
		api.AlivePath: func(w http.ResponseWriter, _ *http.Request) { reply(w, api.Empty{}, nil) },
	}
	for _, s := range api.Streams() {
		rs.stream(&s, serving[s.Path])
	}
}

// reply sends data, or the error if there is one.
func reply(w http.ResponseWriter, data any, err error) { replyTraced(w, data, err, nil) }

// replyTraced is reply with the steps of the request.
func replyTraced(w http.ResponseWriter, data any, err error, spans []agency.Span) {
	if rows, ok := data.(*api.RunRows); ok && err == nil {
		w.Header().Set("Content-Type", "application/json")
		if rows.WriteTo(w, spans) != nil {
			panic(http.ErrAbortHandler) // a client that is still there sees that the answer is cut off
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
				reply(w, nil, agency.Errorf(agency.CodeInternal, "the daemon failed in %s", r.URL.Path).WithHint("agency daemon logs"))
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

// untilStop is the method Daemon.untilStop.
type untilStop func(ctx context.Context) (context.Context, context.CancelFunc)

// orAfter is untilStop for a request with a timeout_ms, where 0 means no limit.
func (until untilStop) orAfter(ctx context.Context, ms int64) (context.Context, context.CancelFunc, error) {
	timeout, err := api.Milliseconds("timeout_ms", ms)
	if err != nil {
		return ctx, func() {}, err
	}
	ctx, cancel := until(ctx)
	if timeout == 0 {
		return ctx, cancel, nil
	}
	ctx, done := context.WithTimeout(ctx, timeout)
	return ctx, func() { done(); cancel() }, nil
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
