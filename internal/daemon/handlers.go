package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/resolve"
	"agency/internal/supervisor"
)

// requestLimit is the largest request body, in bytes: a prompt, an environment, and room to escape them.
const requestLimit = 6*agency.PromptLimit + 4<<20

// handler serves all operations and streams.
func (d *Daemon) handler() http.Handler { return d.recovered(d.routes()) }

// routes serves each operation of the table, and the streams.
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

// handle serves one operation: version check, strict decoding, the work, the envelope.
func handle[Req, Resp any](d *Daemon, mux *http.ServeMux, op api.Operation[Req, Resp], do func(context.Context, Req) (Resp, error)) {
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
		var req Req
		if err := api.Decode(body, &req); err != nil {
			reply(w, nil, agency.Errorf(agency.CodeUsage, "the request of %s is not right: %w", op.Name, err))
			return
		}
		ctx := withCaller(r)
		var resp Resp
		if err = d.policy.Allow(ctx, op.Name, &req); err == nil {
			resp, err = do(ctx, req)
		}
		if err != nil && op.Kind == api.Waits && d.isStopping() {
			err = errStopping() // whatever it was: the next daemon can be asked the same
		}
		if err != nil && r.Context().Err() == nil {
			logFailure(d.Log, op.Describe(), err)
		}
		reply(w, resp, err)
	})
}

// logFailure writes down an error that is a defect of agency, or that a client could not expect.
func logFailure(log *slog.Logger, op api.Description, err error) {
	switch code := agency.AsError(err).Code; {
	case code == agency.CodeInternal:
		log.Error("operation failed", "operation", op.Name, "err", err)
	case !op.Gives(code):
		log.Error("unlisted error", "operation", op.Name, "code", code, "err", err)
	}
}

// checkVersion refuses a client of another version: shapes may differ. A client that says none, a person with curl, is
// served. A refusal says whether the daemon is idle, so that the client may replace it.
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
func reply(w http.ResponseWriter, data any, err error) {
	code := http.StatusOK
	var body bytes.Buffer
	if err == nil {
		err = api.EncodeLine(&body, api.Success(data))
	}
	if err != nil {
		failure := api.Failure(err)
		code = failure.Error.Code.HTTPStatus()
		body.Reset()
		_ = api.EncodeLine(&body, failure)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // a client that went away needs no answer
}

// recovered turns a defect in one request into an answer and a line in the log.
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

func (d *Daemon) createRun(ctx context.Context, req api.CreateRunRequest) (api.CreateRunResponse, error) {
	may, err := d.policy.Permission(ctx, &req.Config, &req.Env)
	if err == nil {
		err = may.CheckAsked(&req.Spec)
	}
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	owner, err := d.policy.Caller(ctx)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	id := agency.NewRunID(d.clock.Now(), [10]byte(randomBytes(10)))
	_, free, err := may.Reserve(ctx, 1, id)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	defer free()
	warnings := []string{}
	at, err := d.sup.Projects.Locate(ctx, req.Dir, req.Spec.Repo, req.Spec.BaseRef)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	settings, err := resolve.Run(cfg, &req.Spec, &at.Project)
	if err == nil {
		err = may.CheckChosen(ctx, &req.Spec)
	}
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	r, err := d.sup.CreateRun(ctx, supervisor.CreateRequest{
		ID: id, Owner: owner, Spec: req.Spec, Dir: req.Dir, Env: req.Env, Place: at, Settings: settings,
		Warn: func(text string) { warnings = append(warnings, text) },
	})
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	return api.CreateRunResponse{Run: d.runResponse(r).Run, Warnings: warnings}, nil
}

func (d *Daemon) resumeRun(ctx context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
	may, err := d.policy.Permission(ctx, &req.Config, &req.Env)
	if err == nil {
		err = may.CheckResume(&req)
	}
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	_, free, err := may.Reserve(ctx, 1, agency.RunID(req.Run))
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	defer free()
	warnings := []string{}
	resumed, err := d.sup.ResumeRun(ctx, supervisor.ResumeRequest{
		Ref: req.Run, Prompt: req.Prompt, Fresh: req.Fresh, Restart: req.Restart, Force: req.Force, NoSetup: req.NoSetup,
		Set: req.Set, Env: req.Env,
		Warn:     func(text string) { warnings = append(warnings, text) },
		Settings: resolve.LaterFrom(req.Config, req.Env),
	})
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	return api.ResumeRunResponse{
		Run: d.runResponse(resumed.Run).Run, Continued: resumed.Continued, Note: resumed.Note, Snapshot: resumed.Snapshot, Warnings: warnings,
	}, nil
}

func (d *Daemon) runResponse(r *agency.Run) api.RunResponse {
	return api.RunResponse{Run: api.NewRun(r, d.sup.Observer.Derive(r))}
}

func (d *Daemon) listRuns(ctx context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
	wanted, err := parseLabels(req.Status)
	if err != nil {
		return api.ListRunsResponse{}, err
	}
	var runs []agency.Run
	if filter := (agency.Filter{Removed: req.Removed, Tag: req.Tag}); req.Run == "" {
		runs, err = d.sup.Query.RunsOf(ctx, req.Dir, filter)
	} else {
		runs, err = d.sup.Query.RunOf(ctx, req.Dir, req.Run, filter)
	}
	if err != nil {
		return api.ListRunsResponse{}, err
	}
	resp := api.ListRunsResponse{Runs: make([]api.Run, 0, len(runs))}
	for i := range runs {
		status := d.sup.Observer.Derive(&runs[i])
		if len(wanted) == 0 || wanted[status.Label] {
			resp.Runs = append(resp.Runs, api.NewRun(&runs[i], status))
		}
	}
	return resp, nil
}

func parseLabels(words []string) (map[agency.Label]bool, error) {
	labels := map[agency.Label]bool{}
	for _, w := range words {
		l, err := agency.ParseLabel(w)
		if err != nil {
			return nil, err
		}
		labels[l] = true
	}
	return labels, nil
}

func (d *Daemon) showRun(ctx context.Context, req api.RunRequest) (api.ShowRunResponse, error) {
	r, details, err := d.sup.Query.Show(ctx, req.Run)
	if err != nil {
		return api.ShowRunResponse{}, err
	}
	inputs := []agency.Input{}
	if data, err := file.ReadRegular(details.InputsPath, 1<<20); err == nil {
		if err := json.Unmarshal(data, &inputs); err != nil {
			d.Log.Warn("read inputs", "run", r.ID, "err", err)
		}
	}
	run, requests := api.NewRun(r, d.sup.Observer.Derive(r)), []agency.Request{}
	if run.Request != nil {
		requests = r.Attempt.Situation.Requests
	}
	return api.ShowRunResponse{
		Run: run, Requests: requests,
		Contract: r.Attempt.OwnWord(), Word: r.Attempt.Word.At,
		Attempts: details.Attempts, Steps: details.Steps, Inputs: inputs,
		Git: details.Git, GitProblem: details.GitProblem,
		Connected: details.Connected, LastOutput: details.LastOutput,
		PromptPath: details.PromptPath, LogPath: details.LogPath, LogLost: r.Attempt.LogLost, OutputPath: details.OutputPath,
	}, nil
}

func (d *Daemon) explainRun(ctx context.Context, req api.RunRequest) (api.ExplainRunResponse, error) {
	r, explanation, newest, err := d.sup.Query.Explain(ctx, req.Run)
	if err != nil {
		return api.ExplainRunResponse{}, err
	}
	return api.ExplainRunResponse{
		Run: api.NewRun(r, explanation.Status), Explanation: explanation, Newest: api.NewEvidenceLines(newest),
	}, nil
}

func (d *Daemon) sendInput(ctx context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
	r, delivery, err := d.sup.Input.Send(ctx, req.Run, req.Text, req.PromptID)
	if err != nil {
		return api.SendInputResponse{}, err
	}
	return api.SendInputResponse{RunID: r.ID, Delivered: true, Confirmed: delivery.Confirmed, Effect: string(delivery.Effect), Composer: delivery.Composer}, nil
}

func (d *Daemon) stopRun(ctx context.Context, req api.RunRequest) (api.RunResponse, error) {
	r, err := d.sup.StopRun(ctx, req.Run)
	if err != nil {
		return api.RunResponse{}, err
	}
	return d.runResponse(r), nil
}

func (d *Daemon) removeRun(ctx context.Context, req api.RemoveRunRequest) (api.RemoveRunResponse, error) {
	removal, err := d.sup.RemoveRun(ctx, supervisor.RemoveRequest{Ref: req.Run, Force: req.Force, DeleteBranch: req.DeleteBranch})
	if err != nil {
		return api.RemoveRunResponse{}, err
	}
	r := removal.Run
	return api.RemoveRunResponse{
		ID: r.ID, State: r.Attempt.State, Removed: true, RemovedAt: *r.RemovedAt,
		Snapshot: removal.Snapshot, Branch: removal.Branch, Warnings: removal.Warnings,
	}, nil
}

func (d *Daemon) waitRuns(ctx context.Context, req api.WaitRunsRequest) (api.WaitRunsResponse, error) {
	labels := make([]agency.Label, 0, len(req.For))
	for _, w := range req.For {
		l, err := agency.ParseLabel(w)
		if err != nil {
			return api.WaitRunsResponse{}, err
		}
		labels = append(labels, l)
	}
	timeout, err := api.Milliseconds("timeout_ms", req.TimeoutMS)
	if err != nil {
		return api.WaitRunsResponse{}, err
	}
	ctx, cancel := d.untilStop(ctx)
	defer cancel()
	if timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, timeout)
		defer done()
	}
	runs, statuses, err := d.sup.Query.Wait(ctx, req.Runs, labels)
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return api.WaitRunsResponse{}, err
	}
	resp := api.WaitRunsResponse{Runs: make([]api.Run, 0, len(runs)), TimedOut: timedOut}
	for i := range runs {
		resp.Runs = append(resp.Runs, api.NewRun(&runs[i], statuses[i]))
	}
	return resp, nil
}

// errStopping has a client ask the next daemon.
func errStopping() *agency.Error {
	return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon is stopping")
}

// untilStop ends a context when the daemon stops, for requests that would hold it up.
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

func (d *Daemon) waitSession(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
	ctx, cancel := d.untilStop(ctx)
	defer cancel()
	return d.sessions.Wait(ctx, req)
}

func (d *Daemon) attachRun(ctx context.Context, req api.RunRequest) (api.AttachRunResponse, error) {
	r, socket, err := d.sup.Query.Terminal(ctx, req.Run)
	if err != nil {
		return api.AttachRunResponse{}, err
	}
	return api.AttachRunResponse{RunID: r.ID, Socket: socket}, nil
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
