package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/supervisor"
)

func (d *Daemon) answerRun(ctx context.Context, req api.AnswerRunRequest) (api.AnswerRunResponse, error) {
	r, answered, err := d.sup.Input.Answer(ctx, supervisor.AnswerRequest{
		Ref: req.Run, PromptID: req.PromptID, Reply: agency.Reply{Decision: req.Decision, Text: req.Text},
	})
	if err != nil {
		return api.AnswerRunResponse{}, err
	}
	return api.AnswerRunResponse{RunID: r.ID, PromptID: answered.PromptID, Confirmed: answered.Confirmed}, nil
}

func (d *Daemon) showOutput(ctx context.Context, req api.ShowOutputRequest) (api.ShowOutputResponse, error) {
	r, shown, err := d.sup.Query.Output(ctx, req.Run, req.Lines)
	if err != nil {
		return api.ShowOutputResponse{}, err
	}
	return api.ShowOutputResponse{RunID: r.ID, Lines: shown.Lines, Result: shown.Result}, nil
}

func (d *Daemon) diffRun(ctx context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
	r, diff, err := d.sup.Work.Diff(ctx, req.Run, req.MaxBytes)
	if err != nil {
		return api.DiffRunResponse{}, err
	}
	return api.DiffRunResponse{
		RunID: r.ID, Branch: r.Branch, Worktree: r.Worktree, Repo: r.Repo.Root, BaseCommit: r.Commit,
		Files: diff.Files, Patch: diff.Patch, Truncated: diff.Truncated, LeftOut: diff.LeftOut,
	}, nil
}
