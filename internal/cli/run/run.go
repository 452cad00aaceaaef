// Package run holds the commands that start runs and act on them: run, send, answer, stop, resume
// and so on. Each command is a constructor, and where it has flags a struct of options with a run
// function.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
)

type runOptions struct {
	*command.Deps

	preset     string
	spec       string
	prompt     string
	promptFile string
	repo       string
	base       string
	branch     string
	runner     string
	name       string
	typ        string
	model      string
	tags       []string
	inputs     []string
	env        []string
	maxMinutes int
	stall      time.Duration
	stuck      int
	headless   bool
	attach     bool
	noSetup    bool
	args       []string // for the runner
	exec       Exec
}

// NewRun returns the command agency run.
func NewRun(d *command.Deps, exec Exec) *cobra.Command {
	o := &runOptions{Deps: d, exec: exec}
	cmd := command.New(cobra.Command{
		Use:     "run [TASK] [-- RUNNER ARGS...]",
		Aliases: []string{"new"},
		Short:   "Start an agent on a task in its own worktree",
		GroupID: "run",
		Long: `Starts an agent on a task, in a new worktree and branch of the repository
and in its own tmux session. Your own checkout is not touched and may be dirty. Prints the handle of
the run. Without a task, a terminal opens $VISUAL or $EDITOR for it.

Values that you omit come from --spec, then from the --preset, then from the repository's
agency.toml, then from the [defaults] of your configuration. The model and the arguments of a preset
belong to its runner: with another --runner they are left out.`,
		Example: `  agency run "fix the login test"
  agency run --runner shell --prompt 'make test'
  git diff | agency run --prompt - --name review-diff --type review
  agency run --preset worker --prompt "fix the login test"
  agency run --runner codex --headless --prompt-file task.md -- --search`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, o.run)
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "the task as `TEXT`; - reads it from standard input")
	f.StringVarP(&o.promptFile, "prompt-file", "f", "", "the task as a `FILE`")
	f.StringVar(&o.preset, "preset", "", "a role of the configuration by `NAME`; agency presets ls")
	f.StringVar(&o.spec, "spec", "", "read the request from a JSON `FILE`; flags override it")
	f.StringVar(&o.repo, "repo", "", "a `PATH` in the repository (default: the current directory)")
	f.StringVar(&o.base, "base", "", "branch, tag or commit to start from (default: HEAD)")
	f.StringVar(&o.branch, "branch", "", "name of the new branch (default: agency/HANDLE)")
	f.StringVar(&o.runner, "runner", "", config.RunnerNames()+", or the name of a custom runner")
	f.StringVarP(&o.name, "name", "n", "", "a name to call the run by")
	f.StringVar(&o.typ, "type", "", "a word for the kind of task: plan, build, review ...")
	f.StringVarP(&o.model, "model", "m", "", "the model, as the runner calls it")
	f.StringArrayVar(&o.tags, "tag", nil, "tag the run (repeatable; default: worker)")
	f.StringArrayVar(&o.inputs, "input", nil, "a `FILE` of the repository that the task depends on (repeatable)")
	f.StringArrayVar(&o.env, "env", nil, "set `NAME=VALUE` for the runner (repeatable)")
	f.IntVar(&o.maxMinutes, "max-minutes", 0, "end the runner after this many minutes (0: no limit)")
	command.DurationVar(f, &o.stall, "stall-threshold", 0, "show it as stalled after this time without a sign of work, such as 30m (default: as configured)")
	f.IntVar(&o.stuck, "stuck-after", 0, "alert that it is stuck after this many intervals of the watchdog without a sign of life (default: as configured)")
	f.BoolVar(&o.headless, "headless", false, "no terminal: the runner reads the prompt, works and ends")
	f.BoolVar(&o.noSetup, "no-setup", false, "skip the setup that the repository's agency.toml wants in new worktrees")
	f.BoolVarP(&o.attach, "attach", "a", false, "show the run's terminal at once")
	_ = cmd.RegisterFlagCompletionFunc("preset", d.CompletePresets)
	_ = cmd.RegisterFlagCompletionFunc("runner", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{}
		for _, kind := range config.RunnerKinds() {
			words = append(words, string(kind))
		}
		if cfg, err := d.Config(); err == nil {
			for name := range cfg.Custom {
				words = append(words, name)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	task := args[:dash]
	switch {
	case len(task) > 1:
		return agency.Errorf(agency.CodeUsage, "the task is %d words; quote it", len(task)).
			WithHint("agency run %s; arguments for the runner go after --", agency.ShellWord(strings.Join(task, " ")))
	case len(task) == 1 && (cmd.Flags().Changed("prompt") || cmd.Flags().Changed("prompt-file")):
		return agency.Errorf(agency.CodeUsage, "there are two tasks, %q and that of a flag", task[0]).WithHint("give one; arguments for the runner go after --")
	case len(task) == 1:
		_ = cmd.Flags().Set("prompt", task[0])
	}
	o.args = args[dash:]
	return o.start(cmd.Context(), cmd)
}

func (o *runOptions) start(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case o.attach && o.JSON:
		return agency.Errorf(agency.CodeUsage, "--attach and --json exclude each other")
	case o.attach && !o.OnTerminal():
		return agency.Errorf(agency.CodeUsage, "--attach needs a terminal").WithHint("start the run without it, then: agency attach RUN")
	}
	spec, err := o.materialise(cmd)
	if err != nil {
		return err
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	resp, err := command.Call(ctx, o.Deps, api.CreateRun, api.CreateRunRequest{Spec: spec, Dir: o.Dir, Env: o.Env, Config: o.CallerConfig()})
	if err != nil {
		return err
	}
	err = o.Print(resp, func(w io.Writer) {
		r := &resp.Run
		_, _ = fmt.Fprintln(w, r.Handle)
		o.Warn(resp.Warnings)
		o.Chat("%s works on branch %s", term.SafeLine(r.Runner), term.SafeLine(r.Branch))
		o.Chat("watch: agency attach %s   status: agency ls   end: agency stop %s", r.Ref(), r.Ref())
	})
	if err != nil || !o.attach {
		return err
	}
	return attach(ctx, o.Deps, string(resp.Run.ID), o.exec)
}

// materialise returns the spec file with the flags applied over it. The daemon adds the defaults of
// the configuration.
func (o *runOptions) materialise(cmd *cobra.Command) (agency.Spec, error) {
	spec := agency.Spec{}
	if o.spec != "" {
		data, err := o.readFile(o.spec)
		if err != nil {
			return spec, err
		}
		if err := api.Decode(data, &spec); err != nil {
			return spec, agency.Errorf(agency.CodeSpecInvalid, "%s:%w", o.spec, err).WithHint("docs/json.md describes the spec")
		}
	}
	given := cmd.Flags().Changed
	if given("prompt") && given("prompt-file") {
		return spec, agency.Errorf(agency.CodeUsage, "--prompt and --prompt-file exclude each other")
	}
	if given("runner") && o.runner == "" {
		return spec, agency.Errorf(agency.CodeUsage, "--runner is empty").WithHint("drop it, or name a runner: --runner codex")
	}
	set := func(flag string, to *string, value string) {
		if given(flag) {
			*to = value
		}
	}
	set("preset", &spec.Preset, o.preset)
	set("repo", &spec.Repo, o.repo)
	set("base", &spec.BaseRef, o.base)
	set("branch", &spec.Branch, o.branch)
	set("name", &spec.Name, o.name)
	set("type", &spec.Type, o.typ)
	set("model", &spec.Runner.Model, o.model)
	if given("runner") {
		spec.Runner.Kind, spec.Runner.Name = config.ParseRunner(o.runner)
	}
	if given("max-minutes") {
		spec.Limits.MaxMinutes = o.maxMinutes
	}
	if given("stall-threshold") {
		if o.stall < time.Second {
			return spec, agency.Errorf(agency.CodeUsage, "--stall-threshold is %s, less than a second", o.stall).WithHint("for example: --stall-threshold 30m")
		}
		spec.Limits.StallAfterMS = o.stall.Milliseconds()
	}
	if given("stuck-after") {
		if o.stuck < 1 {
			return spec, agency.Errorf(agency.CodeUsage, "--stuck-after is %d, less than one interval", o.stuck).WithHint("for example: --stuck-after 10")
		}
		spec.Limits.StuckIntervals = o.stuck
	}
	if given("headless") {
		spec.Headless = &o.headless
	}
	if given("no-setup") {
		spec.NoSetup = o.noSetup
	}
	spec.Tags = append(spec.Tags, o.tags...)
	spec.Env = append(spec.Env, o.env...)
	spec.Runner.Args = append(spec.Runner.Args, o.args...)
	for _, path := range o.inputs {
		spec.Inputs = append(spec.Inputs, agency.SpecInput{Path: o.Absolute(path), Mode: "read"})
	}
	return spec, o.readPrompt(cmd, &spec)
}

// readPrompt reads the task from where the flags say. Without a flag the task of the spec stays.
func (o *runOptions) readPrompt(cmd *cobra.Command, spec *agency.Spec) error {
	text := o.prompt
	var err error
	switch {
	case cmd.Flags().Changed("prompt-file"):
		var data []byte
		if data, err = o.readFile(o.promptFile); errors.Is(err, command.ErrNotRegular) {
			err = agency.AsError(err).WithHint("COMMAND | agency run --prompt -")
		}
		text = string(data)
	case cmd.Flags().Changed("prompt") && o.prompt == "-":
		text, err = term.ReadAll(cmd.Context(), o.In, "the prompt", agency.PromptLimit)
	case cmd.Flags().Changed("prompt"):
	case spec.Prompt.Text == "" && spec.Prompt.Path == "" && o.OnTerminal() && term.Editor(o.Env) != "":
		text, err = term.Edit(cmd.Context(), o.Env, "the task")
	case spec.Prompt.Text == "" && spec.Prompt.Path == "":
		return agency.Errorf(agency.CodeUsage, "there is no task").WithHint(`agency run --prompt "fix the login test"`)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := agency.CheckPrompt(text); err != nil {
		return err
	}
	spec.Prompt = agency.SpecPrompt{Text: text}
	return nil
}

// readFile reads a file that the user named, at most as long as a prompt.
func (o *runOptions) readFile(path string) ([]byte, error) {
	f, err := command.OpenRegular(o.Absolute(path))
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, agency.PromptLimit+1))
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "read %s: %w", path, err)
	}
	return data, nil
}
