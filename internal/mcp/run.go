package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
)

// row is a run in a list.
type row struct {
	ID        agency.RunID `json:"id"`
	Name      string       `json:"name"`
	Status    agency.Label `json:"status"`
	Summary   string       `json:"summary"`
	Since     time.Time    `json:"since"`
	Tags      []string     `json:"tags"`
	Input     bool         `json:"is_awaiting_input"`
	Confirm   bool         `json:"is_awaiting_confirmation"`
	PromptID  string       `json:"prompt_id,omitempty"`
	Flag      *agency.Flag `json:"flag,omitempty"`
	Problem   string       `json:"problem,omitempty"`
	Runner    string       `json:"runner"`
	Model     string       `json:"model,omitempty"`
	Attempt   int          `json:"attempt"`
	Branch    string       `json:"branch"`
	Repo      string       `json:"repo"`
	ErrorCode agency.Code  `json:"error_code,omitempty"`
	StartedAt *time.Time   `json:"started_at"`
	EndedAt   *time.Time   `json:"ended_at,omitempty"`
	Removed   bool         `json:"removed,omitempty"`
	OnlyUser  bool         `json:"needs_user_at_terminal,omitempty"` // a dialog that run_answer cannot answer
}

func newRow(r *api.Run) row {
	confirm := r.Request != nil && r.Request.Kind != agency.AsksQuestion
	prompt := agency.Status{Label: r.Status, Since: r.Since, Request: r.Request}.PromptID()
	return row{
		ID: r.ID, Name: r.Ref(), Status: r.Status, Summary: r.Summary, Since: r.Since, Tags: r.Tags,
		Input: prompt != "" && !confirm, Confirm: confirm, PromptID: prompt, Flag: r.Flag, Problem: r.Problem,
		Runner: r.Runner, Model: r.Model, Attempt: r.Attempt, Branch: r.Branch, Repo: r.Repo, ErrorCode: r.ErrorCode,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt, Removed: r.RemovedAt != nil,
		OnlyUser: r.Request != nil && r.Request.Kind == agency.AsksDialog,
	}
}

func newRows(runs []api.Run) []row {
	rows := make([]row, 0, len(runs))
	for i := range runs {
		rows = append(rows, newRow(&runs[i]))
	}
	return rows
}

// detail is everything that an orchestrator needs to know of one run.
type detail struct {
	row
	Request    *agency.Request  `json:"request,omitempty"`
	Requests   []agency.Request `json:"requests,omitempty"` // all open requests, Request first
	Questions  []string         `json:"questions"`
	Blockers   []string         `json:"blockers"`
	HowToTest  string           `json:"how_to_test,omitempty"`
	Risks      []string         `json:"risks"`
	Error      string           `json:"error,omitempty"`
	ExitCode   *int             `json:"exit_code,omitempty"`
	Worktree   string           `json:"worktree_path"`
	Output     string           `json:"output_path,omitempty"`
	LastSignal *time.Time       `json:"last_output"`
	Git        *agency.GitFacts `json:"git"`
	Usage      agency.Usage     `json:"usage"`
}

// onRun returns the handler of a tool for one run. In names the run as a RunRequest does, and do
// gets its id.
func onRun[In any](s *Server, do func(ctx context.Context, run string, in In) (any, error)) handler[In] {
	return func(ctx context.Context, req *sdk.CallToolRequest, in In) (any, error) {
		var named api.RunRequest
		if err := json.Unmarshal(req.Params.Arguments, &named); err != nil {
			return nil, err
		}
		r, err := s.find(ctx, named.Run)
		if err != nil {
			return nil, err
		}
		return do(ctx, string(r.ID), in)
	}
}

func (s *Server) addRuns(tools *toolset) error {
	type filter struct {
		Status  []agency.Label `json:"status,omitempty" jsonschema:"only these, also of runs that ended"`
		Tag     string         `json:"tag,omitempty"`
		Ended   bool           `json:"include_ended,omitempty" jsonschema:"also ended runs"`
		Removed bool           `json:"include_removed,omitempty" jsonschema:"also removed runs"`
	}
	type review struct {
		Run  string `json:"run" jsonschema:"its name, handle or id"`
		Into string `json:"into,omitempty" jsonschema:"the branch; default: as for a landing"`
	}
	return errors.Join(
		add(tools, api.ReviewRun, func(ctx context.Context, _ *sdk.CallToolRequest, in review) (any, error) {
			r, err := s.find(ctx, in.Run)
			if err != nil {
				return nil, err
			}
			return s.review(ctx, string(r.ID), in.Into)
		}),
		add(tools, api.ListRuns, func(ctx context.Context, _ *sdk.CallToolRequest, in filter) (any, error) {
			resp, err := api.Call(ctx, s.Client, api.ListRuns, api.ListRunsRequest{Dir: s.scope(), Status: words(in.Status), Tag: in.Tag, Removed: in.Removed, Order: api.OrderByNeed})
			all := len(resp.Runs)
			if !in.Ended && !in.Removed && len(in.Status) == 0 {
				resp.Runs = slices.DeleteFunc(resp.Runs, func(r api.Run) bool { return r.State.Final() })
			}
			return map[string]any{"runs": newRows(resp.Runs), "ended_omitted": all - len(resp.Runs)}, err
		}),
		addKeys(tools, api.ShowRun, onRun(s, s.status)),
		addKeys(tools, api.ExplainRun, onRun(s, func(ctx context.Context, run string, _ api.RunRequest) (any, error) {
			resp, err := api.Call(ctx, s.Client, api.ExplainRun, api.RunRequest{Run: run})
			return map[string]any{"run": newRow(&resp.Run), "explanation": resp.Explanation}, err
		})),
		addKeys(tools, api.ShowOutput, onRun(s, func(ctx context.Context, run string, in api.ShowOutputRequest) (any, error) {
			in.Run = run
			return api.Call(ctx, s.Client, api.ShowOutput, in)
		})),
		addKeys(tools, api.DiffRun, onRun(s, func(ctx context.Context, run string, in api.DiffRunRequest) (any, error) {
			in.Run = run
			return api.Call(ctx, s.Client, api.DiffRun, in)
		})),
	)
}

// words returns labels as requests have them.
func words(labels []agency.Label) []string {
	words := make([]string, 0, len(labels))
	for _, l := range labels {
		words = append(words, string(l))
	}
	return words
}

func (s *Server) status(ctx context.Context, run string, _ api.RunRequest) (any, error) {
	resp, err := api.Call(ctx, s.Client, api.ShowRun, api.RunRequest{Run: run})
	if err != nil {
		return nil, err
	}
	d := detail{
		row: newRow(&resp.Run), Request: resp.Run.Request, Requests: resp.Requests, Questions: []string{}, Blockers: []string{}, Risks: []string{},
		Error: resp.Run.Error, ExitCode: resp.Run.ExitCode, Worktree: resp.Run.Worktree, Output: resp.OutputPath,
		LastSignal: resp.LastOutput, Git: resp.Git, Usage: resp.Run.Usage,
	}
	if c := resp.Contract; c != nil {
		d.Questions, d.Blockers, d.Risks, d.HowToTest = c.Questions, c.Blockers, c.Risks, c.HowToTest
	}
	return d, nil
}

// review returns what a run would bring into a branch, for a model.
func (s *Server) review(ctx context.Context, run, into string) (any, error) {
	resp, err := api.Call(ctx, s.Client, api.ReviewRun, api.ReviewRunRequest{Run: run, Into: into, Env: s.Env, Config: s.Config})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"run": newRow(&resp.Run), "target": resp.Target, "commits": resp.Commits, "files": resp.Files, "uncommitted": resp.Uncommitted,
		"conflicts": resp.Conflicts, "checks": resp.Checks, "obstacle": resp.Obstacle, "code": resp.Code, "comments": resp.Comments,
		"summary": resp.Summary, "how_to_test": resp.HowToTest, "risks": resp.Risks,
	}, nil
}
