package maintain

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

type initOptions struct {
	*command.Deps

	repo    string
	archive bool
	force   bool
	dryRun  bool
}

// NewInit returns the command agency init.
func NewInit(d *command.Deps) *cobra.Command {
	o := &initOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "init",
		Short:   "Prepare a repository: agency.toml, CLAUDE.md, .gitignore",
		GroupID: "maintain",
		Long: `Writes the settings of a repository into it: agency.toml with the answers to a few
questions, CLAUDE.md for agents (never over an existing one), a marked block in .gitignore and, if
you want it, agent_runs/ with a link for every run. On a terminal it asks the questions; elsewhere
it takes the answers from the flags, and the defaults for the others. Run again, it changes only
what has a new answer.`,
		Example: `  agency init
  agency init --dry-run
  agency init --runner codex --base main --parallel=false`,
		Args: command.Takes(),
	}, o.run)
	f := cmd.Flags()
	for _, q := range questions() {
		if q.yesNo {
			f.Bool(q.flag, false, q.help)
		} else {
			f.String(q.flag, "", q.help)
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("runner", complete.Runners(d))
	_ = cmd.RegisterFlagCompletionFunc("base", complete.Bases(d))
	complete.Values(cmd, "layout", agency.LayoutMinimal, agency.LayoutStandard)
	complete.Values(cmd, "id-format", "mmdd-slug-hash", "timestamp-slug")
	complete.Values(cmd, "sandbox", "worktree", "landlock", "process", "container")
	f.StringVar(&o.repo, "repo", "", "a `PATH` in the repository (default: the current directory)")
	f.BoolVar(&o.archive, "archive-scout", false, "with --layout standard: move the files of ai_docs/scout to scout_outputs/archive")
	f.BoolVar(&o.force, "force", false, "write agency.toml and the templates anew; agency.toml.bak keeps the old agency.toml")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would change, and write nothing")
	return cmd
}

func (o *initOptions) run(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	if _, err := o.Config(); err != nil {
		return err
	}
	req := api.InitRepoRequest{
		Dir: o.Absolute(o.repo), Archive: o.archive, Force: o.force, DryRun: true, Trust: !o.InsideRun(),
		Env: o.Env, Config: o.CallerConfig(),
	}
	all := questions()
	if err := fromFlags(cmd, all, &req.Answers); err != nil {
		return err
	}
	asks := o.OnTerminal() && !o.JSON
	if asks {
		ok, err := o.interview(ctx, cmd, all, &req)
		if err != nil {
			return err
		}
		if !ok {
			o.Chat("nothing was written")
			return nil
		}
	}
	req.DryRun = o.dryRun
	resp, err := command.Call(ctx, o.Deps, api.InitRepo, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if !asks {
			o.assumed(&resp)
		}
		o.initText(w, &resp)
		o.afterInit(&resp)
	})
}

// interview asks the questions that no flag answered, shows what would change, and reports whether
// to make the changes.
func (o *initOptions) interview(ctx context.Context, cmd *cobra.Command, all []question, req *api.InitRepoRequest) (bool, error) {
	now, err := command.Call(ctx, o.Deps, api.InitRepo, *req)
	if err != nil {
		return false, err
	}
	in := term.ReadLines(o.In)
	o.Chat("%s. Enter takes what is in brackets.", term.SafeLine(now.Root))
	for i := range all {
		q := &all[i]
		if cmd.Flags().Changed(q.flag) {
			continue
		}
		shown := settingOf(&now, q.key)
		if q.key == sandboxKey {
			shown = o.adviseSandbox(&now, shown, &req.Answers)
		}
		if err := o.ask(ctx, in, q, shown, req); err != nil {
			return false, err
		}
	}
	if layout := req.Answers.Layout; !req.Archive && len(now.Scouts) > 0 && (layout != nil && *layout == agency.LayoutStandard || layout == nil && settingOf(&now, "project.layout") == agency.LayoutStandard) {
		o.Chat("ai_docs/scout holds %s.", term.SafeLine(strings.Join(now.Scouts, ", ")))
		if req.Archive, err = in.Confirm(ctx, o.Err, "Move that to scout_outputs/archive?", false); err != nil {
			return false, err
		}
	}
	plan, err := command.Call(ctx, o.Deps, api.InitRepo, *req)
	if err != nil {
		return false, err
	}
	if cmd.Flags().Changed("dry-run") || !changesAnything(&plan) {
		return true, nil // nothing is to be decided
	}
	_, _ = fmt.Fprintln(o.Out)
	plan.DryRun = true
	o.initText(o.Out, &plan)
	return in.Confirm(ctx, o.Err, "Write this?", true)
}

// adviseSandbox prints what this machine can enforce, and returns the level to use when the user
// chooses none: in a new agency.toml the strictest one that works here.
func (o *initOptions) adviseSandbox(now *api.InitRepoResponse, level string, answers *api.InitAnswers) string {
	switch {
	case level == string(agency.SandboxContainer):
		return level
	case now.SandboxProblem != "":
		o.Chat("Agents can only have worktrees of their own here, and all your rights: %s.", term.SafeLine(now.SandboxProblem))
		return level
	case level == string(agency.SandboxProcess):
		return level
	}
	o.Chat("process (recommended, it works here) keeps agents from your keys, your other files and processes; worktree does not.")
	if !isNew(now) {
		return level
	}
	level = string(agency.SandboxProcess)
	answers.Sandbox = &level
	return level
}

// isNew reports whether agency.toml does not exist yet.
func isNew(resp *api.InitRepoResponse) bool {
	for _, c := range resp.Changes {
		if c.Path == agency.ProjectFile {
			return c.Action == "created"
		}
	}
	return false
}

func settingOf(resp *api.InitRepoResponse, key string) string {
	for _, s := range resp.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func changesAnything(resp *api.InitRepoResponse) bool {
	for _, c := range resp.Changes {
		if c.Action != "exists" && c.Action != "kept" {
			return true
		}
	}
	return false
}

// assumed prints the answers that the user did not give.
func (o *initOptions) assumed(resp *api.InitRepoResponse) {
	var words []string
	for _, s := range resp.Settings {
		if s.From != "answer" && s.Value != "" {
			_, name, _ := strings.Cut(s.Key, ".")
			words = append(words, name+" "+s.Value)
		}
	}
	if len(words) > 0 {
		o.Chat("no terminal to ask on, so: %s (flags change that: agency init --help)", term.SafeLine(strings.Join(words, ", ")))
	}
}

// initText writes what init did or, in a dry run, what it would do and write.
func (o *initOptions) initText(w io.Writer, resp *api.InitRepoResponse) {
	for _, c := range resp.Changes {
		name := c.Path
		if name == "CLAUDE.md" {
			name = "claude_md"
		}
		note := ""
		switch {
		case c.From != "":
			note = " from " + c.From
		case c.Backup != "":
			note = "; the old one is " + c.Backup
		case c.Action == "kept":
			note = ": its name is taken in the archive"
		}
		_, _ = fmt.Fprintf(w, "%s: %s%s\n", term.SafeLine(name), c.Action, term.SafeText(note))
		if c.Path == agency.ProjectFile {
			for _, key := range resp.Keys {
				_, _ = fmt.Fprintf(w, "  %s\n", term.SafeLine(key))
			}
		}
		if resp.DryRun {
			_, _ = io.WriteString(w, o.Patch(term.SafeText(c.Diff)))
		}
	}
}

// afterInit prints what is left to do.
func (o *initOptions) afterInit(resp *api.InitRepoResponse) {
	if len(resp.Scouts) > 0 && !o.archive && settingOf(resp, "project.layout") == agency.LayoutStandard && !movesScouts(resp) {
		o.Chat("ai_docs/scout stays; to move what is in it to scout_outputs/archive: agency init --archive-scout")
	}
	if resp.TrustNote != "" {
		o.Chat("new worktrees want to %s; that is not trusted: %s", term.SafeLine(resp.Wants), term.SafeLine(resp.TrustNote))
	}
	if resp.SetupNote != "" {
		o.Chat("agency: note: %s", term.SafeLine(resp.SetupNote))
	}
	if settingOf(resp, sandboxKey) == string(agency.SandboxProcess) && resp.SandboxProblem != "" {
		o.Chat("agency: note: runs will be refused on this machine: %s", term.SafeLine(resp.SandboxProblem))
	}
	switch {
	case resp.DryRun:
		o.Chat("nothing was written")
	case changesAnything(resp):
		o.Chat("next: commit that, and then: agency run --prompt \"...\"")
	}
}

func movesScouts(resp *api.InitRepoResponse) bool {
	for _, c := range resp.Changes {
		if c.Action == "moved" {
			return true
		}
	}
	return false
}
