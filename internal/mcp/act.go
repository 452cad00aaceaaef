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
	Prompt     string   `json:"prompt" jsonschema:"the whole task: the agent knows nothing else of what you want"`
	Name       string   `json:"name,omitempty" jsonschema:"a name to call the run by"`
	Preset     string   `json:"preset,omitempty" jsonschema:"a role of the configuration, such as worker, that fills in the rest"`
	Runner     string   `json:"runner,omitempty" jsonschema:"a coding agent that agency knows, shell, or the name of a custom runner; agency doctor lists them"`
	Model      string   `json:"model,omitempty" jsonschema:"as the runner calls it"`
	Type       string   `json:"type,omitempty" jsonschema:"a word for the kind of task: plan, build, review"`
	Tags       []string `json:"tags,omitempty" jsonschema:"tags of the run; worker unless told"`
	Base       string   `json:"base,omitempty" jsonschema:"branch, tag or commit to start from; HEAD unless told"`
	Branch     string   `json:"branch,omitempty" jsonschema:"name of the new branch"`
	Headless   *bool    `json:"headless,omitempty" jsonschema:"without a terminal: it reads the task, works and ends, and takes no messages"`
	MaxMinutes int      `json:"max_minutes,omitempty" jsonschema:"end it after so many minutes"`
}

func (s *Server) addActs(server *sdk.Server) error {
	type sending struct {
		Run      string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
		Text     string `json:"text" jsonschema:"the message; Enter is pressed behind it"`
		PromptID string `json:"prompt_id,omitempty" jsonschema:"the prompt that this answers, from run_status: the message is refused if the run waits for something else by now"`
	}
	type answer struct {
		Run      string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
		PromptID string `json:"prompt_id" jsonschema:"what is answered, from run_status or an alert"`
		Decision string `json:"decision,omitempty" jsonschema:"for a permission: allow, this once, or deny. deny refuses a question too"`
		Text     string `json:"text,omitempty" jsonschema:"for a question: one of its options, or an answer in one line"`
	}
	type resumption struct {
		Run     string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
		Prompt  string `json:"prompt,omitempty" jsonschema:"a new task; the old one stands unless told"`
		Restart bool   `json:"restart,omitempty" jsonschema:"stop it first if it still runs: the way to restart a stuck worker"`
		Fresh   bool   `json:"fresh,omitempty" jsonschema:"begin a new conversation instead of going on with the old one"`
	}
	type flag struct {
		Run    string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these; your own name for yourself"`
		Reason string `json:"reason" jsonschema:"what to look at, in one short sentence"`
	}
	type report struct {
		Status    string   `json:"status" jsonschema:"working, needs_input, blocked, ready_for_review, error, complete or help"`
		Summary   string   `json:"summary" jsonschema:"what you do, need or did, in one short sentence"`
		Questions []string `json:"questions,omitempty" jsonschema:"with needs_input: what you need to know"`
		Blockers  []string `json:"blockers,omitempty" jsonschema:"with blocked: what stops you"`
		HowToTest string   `json:"how_to_test,omitempty" jsonschema:"with ready_for_review: how a reviewer can check the work"`
		Risks     []string `json:"risks,omitempty" jsonschema:"what a reviewer should know"`
		Quiet     int      `json:"quiet_minutes,omitempty" jsonschema:"with working: for how long you will be silent, so that you do not count as stalled"`
	}
	return errors.Join(
		add(server, tool{name: "run_create", help: "Start an agent on a task, in a worktree and branch of its own. You become its owner: its alerts come to you as messages."}, s.create),
		add(server, tool{name: "run_send", help: `Type a message into a run's agent and press Enter. It is refused while the run shows a dialog (use run_answer), is headless, has ended, or a
person types there. confirmed says that the agent was seen to take it; if not, composer is what stands in its input box.`},
			onRun(s, func(ctx context.Context, run string, in sending) (any, error) {
				return api.Call(ctx, s.Client, api.SendInput, api.SendInputRequest{Run: run, Text: in.Text, PromptID: in.PromptID})
			})),
		add(server, tool{name: "run_answer", help: `Answer the permission or question that a run waits for. Look first what it asks (run_status): a permission lets it do that. It is refused
if the run waits for something else by now. confirmed says that the run was seen to take the answer; if not, look at run_output.`},
			onRun(s, func(ctx context.Context, run string, in answer) (any, error) {
				return api.Call(ctx, s.Client, api.AnswerRun, api.AnswerRunRequest{
					Run: run, PromptID: in.PromptID, Decision: agency.Decision(in.Decision), Text: in.Text,
				})
			})),
		add(server, tool{name: "run_stop", destroys: true, help: "End a run's agent. Its worktree and branch stay, and run_resume goes on."},
			onRun(s, func(ctx context.Context, run string, _ one) (any, error) {
				resp, err := api.Call(ctx, s.Client, api.StopRun, api.RunRequest{Run: run})
				return newRow(&resp.Run), err
			})),
		add(server, tool{name: "run_resume", help: "Start another attempt of a run that ended, in the same worktree, and with the same conversation where that is possible."},
			onRun(s, func(ctx context.Context, run string, in resumption) (any, error) {
				resp, err := api.Call(ctx, s.Client, api.ResumeRun, api.ResumeRunRequest{
					Run: run, Prompt: in.Prompt, Restart: in.Restart, Fresh: in.Fresh, Env: s.Env, Config: s.Config,
				})
				return map[string]any{"run": newRow(&resp.Run), "continued": resp.Continued, "note": resp.Note, "warnings": resp.Warnings}, err
			})),
		add(server, tool{name: "run_flag", help: `Have somebody look at a run, for a reason: at yours, or at one that you started. It needs attention until its flag is taken away or another
attempt begins. Who should act is alerted, and you are not. Another reason takes the place of yours.`},
			onRun(s, func(ctx context.Context, run string, in flag) (any, error) {
				resp, err := api.Call(ctx, s.Client, api.FlagRun, api.FlagRunRequest{Run: run, Reason: in.Reason})
				return map[string]any{"run": newRow(&resp.Run), "was": resp.Was}, err
			})),
		add(server, tool{name: "run_unflag", help: "Take away the flag of a run that you started, when what it is about is settled. Nobody can do so for itself."},
			onRun(s, func(ctx context.Context, run string, _ one) (any, error) {
				resp, err := api.Call(ctx, s.Client, api.UnflagRun, api.RunRequest{Run: run})
				return map[string]any{"run": newRow(&resp.Run), "was": resp.Was}, err
			})),
		add(server, tool{name: "report_status", help: `Say how you yourself are doing, if you are the agent of a run: the people and agents above you see it at once. Report needs_input or blocked
and then stop; they answer you.`},
			func(_ context.Context, _ *sdk.CallToolRequest, in report) (any, error) {
				return s.Report(Report{
					Status: in.Status, Summary: in.Summary, Questions: in.Questions, Blockers: in.Blockers, HowToTest: in.HowToTest, Risks: in.Risks,
					Quiet: time.Duration(in.Quiet) * time.Minute,
				})
			}),
	)
}

func (s *Server) create(ctx context.Context, _ *sdk.CallToolRequest, in creation) (any, error) {
	spec := agency.Spec{
		Preset: in.Preset, Name: in.Name, Type: in.Type, Tags: in.Tags, BaseRef: in.Base, Branch: in.Branch, Headless: in.Headless,
		Runner: agency.SpecRunner{Model: in.Model}, Prompt: agency.SpecPrompt{Text: in.Prompt}, Limits: agency.SpecLimits{MaxMinutes: in.MaxMinutes},
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
