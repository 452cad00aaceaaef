package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
)

// creation is a task for a new run.
type creation struct {
	Prompt     string              `json:"prompt" jsonschema:"the whole task: the agent knows nothing else"`
	Name       string              `json:"name,omitempty"`
	Preset     string              `json:"preset,omitempty" jsonschema:"a role, as config_list names it"`
	Runner     string              `json:"runner,omitempty" jsonschema:"a coding agent, as config_list names it"`
	Model      string              `json:"model,omitempty"`
	Type       string              `json:"type,omitempty" jsonschema:"plan, build, review or another word"`
	Tags       []string            `json:"tags,omitempty" jsonschema:"default worker"`
	Base       string              `json:"base,omitempty" jsonschema:"commit to start from; default HEAD"`
	Branch     string              `json:"branch,omitempty"`
	Headless   *bool               `json:"headless,omitempty"`
	Mode       agency.Mode         `json:"mode,omitempty"`
	Sandbox    agency.SandboxLevel `json:"sandbox,omitempty"`
	Network    agency.Network      `json:"network,omitempty" jsonschema:"what it reaches; allow: a list of hosts"`
	Resources  agency.Resources    `json:"resources,omitzero" jsonschema:"limits: memory, disk, tmp (4g), pids, cpus, open_files"`
	MaxMinutes int                 `json:"max_minutes,omitempty"`
	NoSetup    bool                `json:"no_setup,omitempty"`
}

func (s *Server) addActs(tools *toolset) error {
	type report struct {
		Status    reportWord `json:"status"`
		Summary   string     `json:"summary" jsonschema:"what you do, need or did, in one sentence"`
		Questions []string   `json:"questions,omitempty" jsonschema:"with needs_input: what you need to know"`
		Blockers  []string   `json:"blockers,omitempty" jsonschema:"with blocked: what stops you"`
		HowToTest string     `json:"how_to_test,omitempty" jsonschema:"with ready_for_review: how a reviewer can check the work"`
		Risks     []string   `json:"risks,omitempty" jsonschema:"what a reviewer should know"`
		Quiet     int        `json:"quiet_minutes,omitempty" jsonschema:"with working: how long you will be silent, so that you do not count as stalled"`
	}
	return errors.Join(
		add(tools, api.CreateRun, s.create),
		addKeys(tools, api.SendInput, onRun(s, func(ctx context.Context, run string, in api.SendInputRequest) (any, error) {
			in.Run = run
			return api.Call(ctx, s.Client, api.SendInput, in)
		})),
		addKeys(tools, api.AnswerRun, onRun(s, func(ctx context.Context, run string, in api.AnswerRunRequest) (any, error) {
			in.Run = run
			return api.Call(ctx, s.Client, api.AnswerRun, in)
		})),
		addKeys(tools, api.InterruptRun, onRun(s, func(ctx context.Context, run string, _ api.RunRequest) (any, error) {
			return api.Call(ctx, s.Client, api.InterruptRun, api.RunRequest{Run: run})
		})),
		addKeys(tools, api.StopRun, onRun(s, func(ctx context.Context, run string, _ api.RunRequest) (any, error) {
			resp, err := api.Call(ctx, s.Client, api.StopRun, api.RunRequest{Run: run})
			return newRow(&resp.Run), err
		})),
		addKeys(tools, api.ResumeRun, onRun(s, func(ctx context.Context, run string, in api.ResumeRunRequest) (any, error) {
			in.Run, in.Env, in.Config = run, s.Env, s.Config
			resp, err := api.Call(ctx, s.Client, api.ResumeRun, in)
			return map[string]any{"run": newRow(&resp.Run), "continued": resp.Continued, "note": resp.Note, "warnings": resp.Warnings}, err
		})),
		addKeys(tools, api.RemoveRun, onRun(s, func(ctx context.Context, run string, in api.RemoveRunRequest) (any, error) {
			in.Run = run
			return api.Call(ctx, s.Client, api.RemoveRun, in)
		})),
		s.addConfig(tools),
		addKeys(tools, api.FlagRun, onRun(s, func(ctx context.Context, run string, in api.FlagRunRequest) (any, error) {
			in.Run = run
			resp, err := api.Call(ctx, s.Client, api.FlagRun, in)
			return map[string]any{"run": newRow(&resp.Run), "was": resp.Was}, err
		})),
		addKeys(tools, api.UnflagRun, onRun(s, func(ctx context.Context, run string, _ api.RunRequest) (any, error) {
			resp, err := api.Call(ctx, s.Client, api.UnflagRun, api.RunRequest{Run: run})
			return map[string]any{"run": newRow(&resp.Run), "was": resp.Was}, err
		})),
		addOther(tools, &api.Tool{Name: "report_status", Help: `Report your own status, if you are the agent of a run, to the user and the agents above you. After needs_input or blocked, stop: they
answer you.`}, false,
			func(_ context.Context, _ *sdk.CallToolRequest, in report) (any, error) {
				return s.Report(Report{
					Status: string(in.Status), Summary: in.Summary, Questions: in.Questions, Blockers: in.Blockers, HowToTest: in.HowToTest, Risks: in.Risks,
					Quiet: time.Duration(in.Quiet) * time.Minute,
				})
			}),
	)
}

// addConfig serves what new runs can have. A sandbox does not have the user's configuration.
func (s *Server) addConfig(tools *toolset) error {
	if s.InSandbox {
		return nil
	}
	return addOther(tools, &api.Tool{Name: "config_list", Help: "The runners and presets that run_create can start, and which runner is the default."}, true,
		func(context.Context, *sdk.CallToolRequest, api.Empty) (any, error) { return s.Configured() })
}

func (s *Server) create(ctx context.Context, _ *sdk.CallToolRequest, in creation) (any, error) {
	spec := agency.Spec{
		Preset: in.Preset, Name: in.Name, Type: in.Type, Tags: in.Tags, BaseRef: in.Base, Branch: in.Branch, Headless: in.Headless, Mode: in.Mode,
		Sandbox: in.Sandbox, Network: in.Network, Resources: in.Resources,
		Runner: agency.SpecRunner{Model: in.Model}, Prompt: agency.SpecPrompt{Text: in.Prompt}, Limits: agency.SpecLimits{MaxMinutes: in.MaxMinutes}, NoSetup: in.NoSetup,
	}
	if in.Runner != "" {
		spec.Runner.Kind, spec.Runner.Name = s.ParseRunner(in.Runner)
	}
	resp, err := api.Call(ctx, s.Client, api.CreateRun, api.CreateRunRequest{Spec: spec, Dir: s.Dir, Env: s.Env, Config: s.Config})
	if err != nil {
		return nil, err
	}
	return map[string]any{"run": newRow(&resp.Run), "warnings": resp.Warnings}, nil
}
