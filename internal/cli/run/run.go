// Package run holds the commands that start runs and act on them: run, send, answer, stop, resume
// and so on. Each command is a constructor, and where it has flags a struct of options with a run
// function.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/duration"
	"agency/internal/plain"
)

type runOptions struct {
	*command.Deps

	asked      agency.Spec // from the flags
	spec       string      // a file; flags override it
	prompt     string
	promptFile string
	runner     string
	inputs     []string
	with       []string // paths of files that are attached to the task
	stall      time.Duration
	headless   bool
	attach     bool
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
		Long: `Starts an agent on a task, in a new worktree and branch of the repository and in
its own tmux session. Your own checkout stays untouched, and may have changes. The command prints
the handle of the run. Without a task, it opens $VISUAL or $EDITOR on a terminal, where you write
one.

Values that you omit come from --spec, then from the --preset, then from the repository's
agency.toml, then from the [defaults] of your configuration. The model and the arguments of a preset
belong to its runner: with another --runner, agency ignores them.`,
		Example: `  agency run "fix the login test"
  agency run --runner shell --prompt 'make test'
  git diff | agency run --prompt - --name review-diff --type review
  agency run --sandbox process --prompt "fix the login test"
  agency run --preset worker --prompt "fix the login test"
  agency run --runner codex --headless --prompt-file task.md -- --search`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, o.run)
	o.addFlags(cmd)
	return cmd
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "the task as `TEXT`; - reads it from standard input")
	f.StringVarP(&o.promptFile, "prompt-file", "f", "", "read the task from `FILE`")
	f.StringVar(&o.asked.Preset, "preset", "", "use the preset `NAME`; agency presets ls lists them")
	f.StringVar(&o.spec, "spec", "", "read the request from a JSON `FILE`; flags override it")
	f.StringVar(&o.asked.Repo, "repo", "", "a `PATH` in the repository (default: the current directory)")
	f.StringVar(&o.asked.BaseRef, "base", "", "start from `BASE`, a branch, tag or commit (default: HEAD)")
	f.StringVar(&o.asked.Branch, "branch", "", "name the new branch `BRANCH` (default: agency/HANDLE)")
	f.StringVar(&o.runner, "runner", "", "start this `RUNNER`: "+config.RunnerNames()+", or the name of a custom runner")
	f.StringVarP(&o.asked.Name, "name", "n", "", "give the run this `NAME`")
	f.StringVar(&o.asked.Type, "type", "", "a `WORD` for the kind of task: plan, build, review ...")
	f.StringVarP(&o.asked.Runner.Model, "model", "m", "", "use this `MODEL`, as the runner names it")
	f.StringArrayVar(&o.asked.Tags, "tag", nil, "give the run this `TAG` (repeatable; default: worker)")
	f.StringArrayVar(&o.inputs, "input", nil, "a `FILE` of the repository that the task depends on (repeatable)")
	f.StringArrayVar(&o.asked.Env, "env", nil, "set `NAME=VALUE` for the runner (repeatable)")
	f.IntVar(&o.asked.Limits.MaxMinutes, "max-minutes", 0, "end the agent after `N` minutes (0: no limit)")
	command.DurationVar(f, &o.stall, "stall-threshold", 0, "show the run as stalled after this `DURATION` without a sign of work, such as 30m (default: as configured)")
	f.IntVar(&o.asked.Limits.StuckIntervals, "stuck-after", 0, "alert that the run is stuck after `N` intervals of the watchdog without a sign of life (default: as configured)")
	f.BoolVar(&o.headless, "headless", false, "short for --mode headless: no terminal; the agent reads the prompt, works and ends")
	f.StringVar((*string)(&o.asked.Mode), "mode", "", "speak with the agent in this `MODE`: terminal, headless or protocol (default: as configured)")
	f.StringVar((*string)(&o.asked.Sandbox), "sandbox", "", "sandbox the agent at this `LEVEL`: worktree, landlock, process or container (default: as configured)")
	f.StringVar((*string)(&o.asked.Network), "network", "", "let an agent in a sandbox reach this `NETWORK`: full, allow (the hosts of [sandbox]) or none (default: as configured)")
	for name, usage := range map[agency.LimitName]string{
		agency.LimitMemory:    "limit the memory of the run to `SIZE`, such as 4g (none: no limit; default: as configured)",
		agency.LimitPids:      "limit its processes and threads to `NUMBER`",
		agency.LimitCPUs:      "limit the processors that it uses to `NUMBER`, such as 1.5",
		agency.LimitDisk:      "limit its worktree to `SIZE`",
		agency.LimitTmp:       "limit /tmp of its sandbox to `SIZE`",
		agency.LimitOpenFiles: "limit the open files of each of its processes to `NUMBER`",
	} {
		flag := strings.ReplaceAll(string(name), "_", "-")
		f.Func(flag, usage, func(text string) error { return o.asked.Resources.Put(name, text) })
		complete.Values(cmd, flag, agency.NoLimit)
	}
	f.BoolVar(&o.asked.NoSetup, "no-setup", false, "do not run the setup of the repository's agency.toml")
	f.StringArrayVar(&o.with, "with", nil, withUsage)
	f.BoolVarP(&o.attach, "attach", "a", false, "show the run's terminal at once")
	complete.Values(cmd, "mode", "terminal", "headless", "protocol")
	complete.Values(cmd, "sandbox", "worktree", "landlock", "process", "container")
	complete.Values(cmd, "network", "full", "allow", "none")
	_ = cmd.RegisterFlagCompletionFunc("preset", complete.Presets(o.Deps))
	_ = cmd.RegisterFlagCompletionFunc("runner", complete.Runners(o.Deps))
	_ = cmd.RegisterFlagCompletionFunc("base", complete.Bases(o.Deps))
	_ = cmd.RegisterFlagCompletionFunc("tag", complete.Tags(o.Deps))
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
			WithHint("agency run %s; arguments for the runner go after --", plain.ShellWord(strings.Join(task, " ")))
	case len(task) == 1 && (cmd.Flags().Changed("prompt") || cmd.Flags().Changed("prompt-file")):
		return agency.Errorf(agency.CodeUsage, "the command line has two tasks, %q and that of a flag", task[0]).WithHint("give one; arguments for the runner go after --")
	case len(task) == 1:
		_ = cmd.Flags().Set("prompt", task[0])
	}
	o.asked.Runner.Args = args[dash:]
	return o.start(cmd.Context(), cmd)
}

func (o *runOptions) start(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case o.attach && o.JSON:
		return agency.Errorf(agency.CodeUsage, "--attach and --json exclude each other")
	case o.attach && !o.OnTerminal():
		return agency.Errorf(agency.CodeUsage, "--attach needs a terminal").WithHint("start the run without it, then: agency attach RUN")
	}
	files, err := attachments(o.Deps, o.with) // before the user writes the task in an editor
	if err != nil {
		return err
	}
	spec, err := o.materialise(cmd)
	if err != nil {
		return err
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	resp, err := command.Call(ctx, o.Deps, api.CreateRun, api.CreateRunRequest{Spec: spec, Files: files, Dir: o.Dir, Env: o.Env, Config: o.CallerConfig()})
	if err != nil {
		return err
	}
	err = o.Print(resp, func(w io.Writer) {
		r := &resp.Run
		_, _ = fmt.Fprintln(w, r.Handle)
		o.Warn(resp.Warnings)
		o.Chat("%s works on branch %s", term.SafeLine(r.Runner), term.SafeLine(r.Branch))
		watch := "watch: agency attach "
		if o.InSandbox() {
			watch = "watch: agency logs -f "
		}
		o.Beside(watch+r.Ref(), "status: agency ls", "end: agency stop "+r.Ref())
	})
	if err != nil || !o.attach {
		return err
	}
	return attach(ctx, o.Deps, string(resp.Run.ID), o.exec)
}

// materialise returns what the flags ask for, on top of the spec file if there is one. The daemon
// adds the defaults of the configuration.
func (o *runOptions) materialise(cmd *cobra.Command) (agency.Spec, error) {
	var spec agency.Spec
	if o.spec != "" {
		data, err := o.readFile(o.spec)
		if err != nil {
			return spec, err
		}
		if err := api.Decode(data, &spec); err != nil {
			return spec, agency.Errorf(agency.CodeSpecInvalid, "%s:%w", o.spec, err).WithHint("docs/json.md describes the spec")
		}
	}
	if err := o.complete(cmd); err != nil {
		return spec, err
	}
	if o.spec == "" {
		spec = o.asked
	} else {
		o.override(&spec, cmd.Flags().Changed)
	}
	return spec, o.readPrompt(cmd, &spec)
}

// complete adds to the flags' spec what flags give in another form than the spec has.
func (o *runOptions) complete(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("prompt") && given("prompt-file"):
		return agency.Errorf(agency.CodeUsage, "--prompt and --prompt-file exclude each other")
	case given("runner") && o.runner == "":
		return agency.Errorf(agency.CodeUsage, "--runner is empty").WithHint("drop it, or name a runner: --runner codex")
	case given("stall-threshold") && o.stall < time.Second:
		return agency.Errorf(agency.CodeUsage, "--stall-threshold is %s, less than a second", duration.Text(o.stall)).WithHint("for example: --stall-threshold 30m")
	case given("stuck-after") && o.asked.Limits.StuckIntervals < 1:
		return agency.Errorf(agency.CodeUsage, "--stuck-after is %d; it is 1 or more", o.asked.Limits.StuckIntervals).WithHint("for example: --stuck-after 10")
	}
	if given("runner") {
		o.asked.Runner.Kind, o.asked.Runner.Name = config.ParseRunner(o.runner)
	}
	if given("headless") {
		o.asked.Headless = &o.headless
	}
	o.asked.Limits.StallAfterMS = o.stall.Milliseconds()
	for _, path := range o.inputs {
		o.asked.Inputs = append(o.asked.Inputs, agency.SpecInput{Path: o.Absolute(path), Mode: "read"})
	}
	return nil
}

// override applies the given flags to the spec of a file. Lists are added to.
func (o *runOptions) override(spec *agency.Spec, given func(flag string) bool) {
	asked := &o.asked
	for flag, set := range map[string]func(){
		"preset":          func() { spec.Preset = asked.Preset },
		"repo":            func() { spec.Repo = asked.Repo },
		"base":            func() { spec.BaseRef = asked.BaseRef },
		"branch":          func() { spec.Branch = asked.Branch },
		"name":            func() { spec.Name = asked.Name },
		"type":            func() { spec.Type = asked.Type },
		"model":           func() { spec.Runner.Model = asked.Runner.Model },
		"runner":          func() { spec.Runner.Kind, spec.Runner.Name = asked.Runner.Kind, asked.Runner.Name },
		"max-minutes":     func() { spec.Limits.MaxMinutes = asked.Limits.MaxMinutes },
		"stall-threshold": func() { spec.Limits.StallAfterMS = asked.Limits.StallAfterMS },
		"stuck-after":     func() { spec.Limits.StuckIntervals = asked.Limits.StuckIntervals },
		"headless":        func() { spec.Headless, spec.Mode = asked.Headless, asked.Mode },
		"mode":            func() { spec.Headless, spec.Mode = asked.Headless, asked.Mode },
		"sandbox":         func() { spec.Sandbox = asked.Sandbox },
		"network":         func() { spec.Network = asked.Network },
		"no-setup":        func() { spec.NoSetup = asked.NoSetup },
	} {
		if given(flag) {
			set()
		}
	}
	spec.Resources = asked.Resources.Or(spec.Resources)
	spec.Tags = append(spec.Tags, asked.Tags...)
	spec.Env = append(spec.Env, asked.Env...)
	spec.Inputs = append(spec.Inputs, asked.Inputs...)
	spec.Runner.Args = append(spec.Runner.Args, asked.Runner.Args...)
}

// readPrompt reads the task from where the flags say. Without a flag the task of the spec stays.
func (o *runOptions) readPrompt(cmd *cobra.Command, spec *agency.Spec) error {
	text := o.prompt
	var err error
	switch {
	case cmd.Flags().Changed("prompt-file"):
		var data []byte
		if data, err = o.readFile(o.promptFile); errors.Is(err, command.ErrNotRegular) || err != nil && o.promptFile == "-" {
			err = agency.AsError(err).WithHint("COMMAND | agency run --prompt -")
		}
		text = string(data)
	case cmd.Flags().Changed("prompt") && o.prompt == "-":
		text, err = term.ReadAll(cmd.Context(), o.In, "the prompt", agency.PromptLimit)
	case cmd.Flags().Changed("prompt"):
	case spec.Prompt.Text == "" && spec.Prompt.Path == "" && o.OnTerminal() && term.Editor(o.Env) != "":
		text, err = term.Edit(cmd.Context(), o.Env, "the task")
		if err == nil && strings.TrimSpace(text) == "" {
			err = agency.Errorf(agency.CodeUsage, "the editor left no task, so nothing is started").WithHint(`agency run "fix the login test"`)
		}
	case spec.Prompt.Text == "" && spec.Prompt.Path == "":
		return agency.Errorf(agency.CodeUsage, "there is no task").WithHint(`agency run "fix the login test"`)
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
		return nil, agency.Errorf(agency.CodeInvalidPath, "read %s: %w", path, err).WithHint("%s", lookBeside(o.Deps, path))
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, agency.PromptLimit+1))
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "read %s: %w", path, err)
	}
	return data, nil
}

// lookBeside returns the hint for a file that cannot be read: the command that lists its folder.
func lookBeside(d *command.Deps, path string) string {
	return "look which files there are: ls -l " + plain.ShellWord(filepath.Dir(d.Absolute(path)))
}
