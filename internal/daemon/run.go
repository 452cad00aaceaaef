package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/lander"
	"agency/internal/policy"
	"agency/internal/resolve"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/trace"
	"agency/internal/verify"
)

// runOperations serve the operations on runs and their snapshots.
type runOperations struct {
	sup       *supervisor.Supervisor
	policy    *policy.Policy
	log       *slog.Logger
	now       func() time.Time
	untilStop untilStop
	store     *sqlite.Store
	verifier  *verify.Verifier
	lander    *lander.Lander
}

func (o runOperations) createRun(ctx context.Context, req api.CreateRunRequest) (api.CreateRunResponse, error) {
	may, err := o.policy.Permission(ctx, &req.Config, &req.Env)
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
	owner, err := o.policy.Caller(ctx)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	id := agency.NewRunID(o.now(), [10]byte(randomBytes(10)))
	_, free, err := may.Reserve(ctx, 1, id)
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	defer free()
	end := trace.Begin(ctx, "locate the repository")
	at, err := o.locate(ctx, may.Sandboxed(), &req)
	end()
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
	r, warnings, err := o.sup.CreateRun(ctx, supervisor.NewRun{
		ID: id, Owner: owner, Spec: req.Spec, Files: req.Files, Env: req.Env, Place: at, Settings: settings, AskedBy: may.Sandboxed(),
	})
	if err != nil {
		return api.CreateRunResponse{}, err
	}
	return api.CreateRunResponse{Run: runResponse(o.sup, r).Run, Warnings: warnings}, nil
}

// locate returns where a run begins. by is the run in a sandbox whose agent asks for the new run;
// nil for all other callers.
func (o runOperations) locate(ctx context.Context, by *agency.Run, req *api.CreateRunRequest) (*supervisor.Place, error) {
	if by == nil {
		return o.sup.Projects.Locate(ctx, req.Dir, req.Spec.Repo, req.Spec.BaseRef)
	}
	if _, err := o.sup.Repos.Of(ctx, by); err != nil { // it starts runs from its commits
		return nil, err
	}
	return o.sup.Projects.LocateInside(ctx, by, req.Spec.BaseRef)
}

func (o runOperations) resumeRun(ctx context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
	may, err := o.policy.Permission(ctx, &req.Config, &req.Env)
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
	r, err := o.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	settings, err := resolve.Later(cfg, r)
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	resumed, err := o.sup.ResumeRun(ctx, supervisor.ResumeRequest{
		Ref: string(r.ID), Prompt: req.Prompt, Mode: req.Mode, Idle: req.Idle, Attempt: req.Attempt, Fresh: req.Fresh, Restart: req.Restart, Force: req.Force, NoSetup: req.NoSetup,
		Set: req.Set, Env: req.Env, Settings: settings, FromSandbox: may.Sandboxed() != nil,
	})
	if err != nil {
		return api.ResumeRunResponse{}, err
	}
	return api.ResumeRunResponse{
		Run: runResponse(o.sup, resumed.Run).Run, Continued: resumed.Continued, Note: resumed.Note, Snapshot: resumed.Snapshot, Warnings: resumed.Warnings,
	}, nil
}

func runResponse(sup *supervisor.Supervisor, r *agency.Run) api.RunResponse {
	return api.RunResponse{Run: api.NewRun(r, sup.Observer.Derive(r))}
}

func (o runOperations) showRun(ctx context.Context, req api.RunRequest) (api.ShowRunResponse, error) {
	r, details, err := o.sup.Query.Show(ctx, req.Run)
	if err != nil {
		return api.ShowRunResponse{}, err
	}
	inputs := []agency.Input{}
	if data, err := file.ReadRegular(details.InputsPath, 1<<20); err == nil {
		if err := json.Unmarshal(data, &inputs); err != nil {
			o.log.Warn("read inputs", "run", r.ID, "err", err)
		}
	}
	checks, err := o.store.ChecksOf(ctx, r.ID)
	if err != nil {
		return api.ShowRunResponse{}, err
	}
	run, requests := api.NewRun(r, o.sup.Observer.Derive(r)), []agency.Request{}
	if run.Request != nil {
		requests = r.Attempt.AgentState.Requests
	}
	todos := []agency.Todo{}
	if r.Attempt.Mode == agency.ModeProtocol { // in other modes the agent does not report what happened to it
		todos = append(todos, r.Attempt.AgentState.Todos...)
	}
	settings, queue := o.sup.Query.Settings(r)
	return api.ShowRunResponse{
		Run: run, Requests: requests, Todos: todos, Settings: settings, Queue: queue,
		Contract: r.Attempt.OwnReport(), StatusAt: r.Attempt.Reported.At,
		Attempts: details.Attempts, Steps: details.Steps, Inputs: inputs,
		Git: details.Git, GitProblem: details.GitProblem, Checks: checks,
		Connected: details.Connected, LastOutput: details.LastOutput,
		PromptPath: details.PromptPath, LogPath: details.LogPath, LogLost: r.Attempt.LogLost, OutputPath: details.OutputPath,
	}, nil
}

func (o runOperations) explainRun(ctx context.Context, req api.RunRequest) (api.ExplainRunResponse, error) {
	r, explanation, newest, err := o.sup.Query.Explain(ctx, req.Run)
	if err != nil {
		return api.ExplainRunResponse{}, err
	}
	return api.ExplainRunResponse{
		Run: api.NewRun(r, explanation.Status), Explanation: explanation, Newest: api.NewEvidenceLines(newest),
	}, nil
}

func (o runOperations) sendInput(ctx context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
	ctx, err := o.by(ctx)
	if err != nil {
		return api.SendInputResponse{}, err
	}
	r, delivery, err := o.sup.Input.Send(ctx, req.Run, req.Text, req.PromptID, req.Files...)
	if err != nil {
		return api.SendInputResponse{}, err
	}
	return api.SendInputResponse{RunID: r.ID, Delivered: true, Confirmed: delivery.Confirmed, Effect: string(delivery.Effect), Composer: delivery.Composer}, nil
}

func (o runOperations) pressKeys(ctx context.Context, req api.PressKeysRequest) (api.PressKeysResponse, error) {
	r, err := o.sup.Input.Press(ctx, supervisor.KeysRequest{Ref: req.Run, Attempt: req.Attempt, PromptID: req.PromptID, Text: req.Text, Keys: req.Keys})
	if err != nil {
		return api.PressKeysResponse{}, err
	}
	return api.PressKeysResponse{RunID: r.ID, Attempt: r.Attempt.Number}, nil
}

// by returns a context that carries who sends something to an agent.
func (o runOperations) by(ctx context.Context) (context.Context, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return nil, err
	}
	if r, err := o.sup.Records.Resolve(ctx, who); err == nil {
		who = r.Ref()
	}
	return supervisor.By(ctx, who), nil
}

// interruptRun ends what the agent of a run does, but not the agent.
func (o runOperations) interruptRun(ctx context.Context, req api.RunRequest) (api.InterruptRunResponse, error) {
	ctx, err := o.by(ctx)
	if err != nil {
		return api.InterruptRunResponse{}, err
	}
	r, delivery, err := o.sup.Input.Interrupt(ctx, req.Run)
	if err != nil {
		return api.InterruptRunResponse{}, err
	}
	return api.InterruptRunResponse{RunID: r.ID, Confirmed: delivery.Confirmed, Queued: delivery.Queued}, nil
}

func (o runOperations) setRun(ctx context.Context, req api.SetRunRequest) (api.SetRunResponse, error) {
	ctx, err := o.by(ctx)
	if err != nil {
		return api.SetRunResponse{}, err
	}
	r, now, delivery, err := o.sup.Input.Set(ctx, req.Run, req.Setting, req.Value)
	if err != nil {
		return api.SetRunResponse{}, err
	}
	return api.SetRunResponse{RunID: r.ID, Setting: req.Setting, Value: now, Confirmed: delivery.Confirmed}, nil
}

func (o runOperations) takeBack(ctx context.Context, req api.UnsendRequest) (api.UnsendResponse, error) {
	ctx, err := o.by(ctx)
	if err != nil {
		return api.UnsendResponse{}, err
	}
	r, message, delivery, err := o.sup.Input.TakeBack(ctx, req.Run, req.ID)
	if err != nil {
		return api.UnsendResponse{}, err
	}
	return api.UnsendResponse{RunID: r.ID, Message: message, Confirmed: delivery.Confirmed}, nil
}

// stopRun stops a run. A run that has already ended is not an error.
func (o runOperations) stopRun(ctx context.Context, req api.RunRequest) (api.StopRunResponse, error) {
	r, err := o.sup.StopRun(ctx, req.Run)
	stopped := err == nil
	if agency.IsCode(err, agency.CodeInvalidState) {
		if now, lost := o.sup.Records.Resolve(ctx, req.Run); lost == nil && now.Attempt.State.Final() {
			r, err = now, nil
		}
	}
	if err != nil {
		return api.StopRunResponse{}, err
	}
	return api.StopRunResponse{Run: runResponse(o.sup, r).Run, Stopped: stopped}, nil
}

func (o runOperations) removeRun(ctx context.Context, req api.RemoveRunRequest) (api.RemoveRunResponse, error) {
	removal, err := o.sup.RemoveRun(ctx, supervisor.RemoveRequest{Ref: req.Run, Stop: req.Stop, Discard: req.Discard, DeleteBranch: req.DeleteBranch})
	if err != nil {
		return api.RemoveRunResponse{}, err
	}
	r := removal.Run
	return api.RemoveRunResponse{
		ID: r.ID, State: r.Attempt.State, Removed: true, Already: removal.Already, RemovedAt: *r.RemovedAt,
		Snapshot: removal.Snapshot, Branch: removal.Branch, Warnings: removal.Warnings,
	}, nil
}

func (o runOperations) waitRuns(ctx context.Context, req api.WaitRunsRequest) (api.WaitRunsResponse, error) {
	labels := make([]agency.Label, 0, len(req.For))
	for _, w := range req.For {
		l, err := agency.ParseLabel(w)
		if err != nil {
			return api.WaitRunsResponse{}, err
		}
		labels = append(labels, l)
	}
	ctx, cancel, err := o.untilStop.orAfter(ctx, req.TimeoutMS)
	if err != nil {
		return api.WaitRunsResponse{}, err
	}
	defer cancel()
	runs, statuses, err := o.sup.Query.Wait(ctx, req.Runs, labels)
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

func (o runOperations) attachRun(ctx context.Context, req api.RunRequest) (api.AttachRunResponse, error) {
	r, socket, err := o.sup.Query.Terminal(ctx, req.Run)
	if err != nil {
		return api.AttachRunResponse{}, err
	}
	return api.AttachRunResponse{RunID: r.ID, Socket: socket}, nil
}

func (o runOperations) joinRun(ctx context.Context, req api.RunRequest) (api.JoinRunResponse, error) {
	r, door, err := o.sup.Input.Join(ctx, req.Run)
	if err != nil {
		return api.JoinRunResponse{}, err
	}
	resp := api.JoinRunResponse{RunID: r.ID, Runner: r.Runner.Kind, Dir: r.Worktree, Conversation: door.Conversation, Socket: door.Socket}
	if r.Sandbox.Level.Confines() { // its agent writes the worktree, and this terminal is outside of the sandbox
		resp.Dir = "/"
	}
	return resp, nil
}

func (o runOperations) answerRun(ctx context.Context, req api.AnswerRunRequest) (api.AnswerRunResponse, error) {
	ctx, err := o.by(ctx)
	if err != nil {
		return api.AnswerRunResponse{}, err
	}
	r, answered, err := o.sup.Input.Answer(ctx, supervisor.AnswerRequest{
		Ref: req.Run, PromptID: req.PromptID, Reply: agency.Reply{Decision: req.Decision, Text: req.Text},
	})
	if err != nil {
		return api.AnswerRunResponse{}, err
	}
	return api.AnswerRunResponse{RunID: r.ID, PromptID: answered.PromptID, Confirmed: answered.Confirmed}, nil
}

func (o runOperations) allowHost(ctx context.Context, req api.AllowHostRequest) (api.AllowHostResponse, error) {
	r, reached, err := o.sup.AllowHost(ctx, req.Run, req.Host, req.Scope)
	if err != nil {
		return api.AllowHostResponse{}, err
	}
	return api.AllowHostResponse{RunID: r.ID, Reached: reached}, nil
}

func (o runOperations) showOutput(ctx context.Context, req api.ShowOutputRequest) (api.ShowOutputResponse, error) {
	r, shown, err := o.sup.Query.Output(ctx, req.Run, req.Lines)
	if err != nil {
		return api.ShowOutputResponse{}, err
	}
	return api.ShowOutputResponse{RunID: r.ID, Lines: shown.Lines, Result: shown.Result}, nil
}

func (o runOperations) showScreen(ctx context.Context, req api.ShowScreenRequest) (api.ShowScreenResponse, error) {
	ctx, cancel, err := o.untilStop.orAfter(ctx, req.Wait)
	if err != nil {
		return api.ShowScreenResponse{}, err
	}
	defer cancel()
	r, screen, err := o.sup.Query.Screen(ctx, req.Run, req.Seen, req.History)
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return api.ShowScreenResponse{}, err
	}
	return api.ShowScreenResponse{RunID: r.ID, Attempt: r.Attempt.Number, Screen: screen, TimedOut: timedOut}, nil
}

func (o runOperations) diffRun(ctx context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
	part := agency.DiffPart{Limit: req.MaxBytes, List: req.List, File: req.File, IgnoreSpace: req.IgnoreSpace, Context: req.Context}
	switch req.Base {
	case "", api.DiffFromBase:
	case api.DiffFromTarget:
		var err error
		if part.From, err = o.lander.Comments.Begin(ctx, lander.Request{Ref: req.Run}); err != nil {
			return api.DiffRunResponse{}, err
		}
	case api.DiffFromLastTurn:
		part.LastTurn = true
	default:
		return api.DiffRunResponse{}, agency.Errorf(agency.CodeUsage, "%q is not a base of a diff", req.Base).WithHint("one of: base, target, last-turn")
	}
	r, diff, err := o.sup.Work.Diff(ctx, req.Run, part)
	if err == nil {
		err = o.lander.Comments.Reviewed(ctx, r.ID, diff.List)
	}
	if err != nil {
		return api.DiffRunResponse{}, err
	}
	return api.DiffRunResponse{
		RunID: r.ID, Branch: r.Branch, Worktree: r.Worktree, Repo: r.Repo.Root, BaseCommit: diff.From, Revision: diff.Tree, List: diff.List,
		Files: diff.Files, Patch: diff.Patch, Truncated: diff.Truncated, LeftOut: diff.LeftOut,
	}, nil
}

func (o runOperations) changeTags(ctx context.Context, req api.ChangeTagsRequest) (api.RunResponse, error) {
	r, err := o.sup.Marks.Tag(ctx, req.Run, req.Add, req.Remove)
	if err != nil {
		return api.RunResponse{}, err
	}
	return runResponse(o.sup, r), nil
}

func (o runOperations) flagRun(ctx context.Context, req api.FlagRunRequest) (api.FlagRunResponse, error) {
	by, err := o.policy.Caller(ctx)
	if err != nil {
		return api.FlagRunResponse{}, err
	}
	r, was, err := o.sup.Marks.Flag(ctx, req.Run, req.Reason, by)
	if err != nil {
		return api.FlagRunResponse{}, err
	}
	return api.FlagRunResponse{Run: runResponse(o.sup, r).Run, Was: was}, nil
}

func (o runOperations) unflagRun(ctx context.Context, req api.RunRequest) (api.FlagRunResponse, error) {
	by, err := o.policy.Caller(ctx)
	if err != nil {
		return api.FlagRunResponse{}, err
	}
	r, was, err := o.sup.Marks.Unflag(ctx, req.Run, by)
	if err != nil {
		return api.FlagRunResponse{}, err
	}
	return api.FlagRunResponse{Run: runResponse(o.sup, r).Run, Was: was}, nil
}
