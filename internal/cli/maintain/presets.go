package maintain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/duration"
)

// NewPresets returns the command agency presets.
func NewPresets(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "presets",
		Short:   "List and show the roles that runs can have",
		GroupID: "maintain",
		Long: `A preset is a named role: the runner, model, arguments, tags, system prompt
and stuck timeout of the watchdog for a run that does not set them itself. Presets are the tables
[presets.NAME] of the configuration.`,
		Example: "  agency presets ls\n  agency run --preset worker --prompt 'fix the login test'",
	}, newPresetsList(d), newPresetsShow(d))
}

// preset is what the commands print with --json.
type preset struct {
	Name            string      `json:"name"`
	Harness         string      `json:"harness"` // empty is the default runner
	Description     string      `json:"description"`
	Model           string      `json:"model"`
	SkipPermissions bool        `json:"dangerously_skip_permissions"`
	Args            []string    `json:"args"`
	Env             []string    `json:"env"` // names: values can be secrets
	Tags            []string    `json:"tags"`
	Headless        bool        `json:"headless"`
	Mode            agency.Mode `json:"mode"` // empty leaves the choice open
	PromptFile      string      `json:"system_prompt_file"`
	StallAfterMS    int64       `json:"stall_after_ms"`  // 0 means the configuration's value
	StuckIntervals  int         `json:"stuck_intervals"` // 0 means the configuration's value
	ErrorPatterns   []string    `json:"error_patterns"`  // empty means the configuration's
	Problem         string      `json:"problem"`         // why no run can use it now; empty when one can
}

func newPreset(name string, p *config.Preset) preset {
	env := make([]string, 0, len(p.Env))
	for _, kv := range p.Env {
		variable, _, _ := strings.Cut(kv, "=")
		env = append(env, variable)
	}
	shown := preset{
		Name: name, Harness: p.Harness, Description: p.Description, Model: p.Model, SkipPermissions: p.SkipPermissions, Args: p.Args, Env: env,
		Tags: p.Tags, Headless: p.Headless, Mode: p.Mode, PromptFile: p.PromptFile, StallAfterMS: p.StallThreshold.Milliseconds(), StuckIntervals: p.StuckIntervals, ErrorPatterns: p.ErrorPatterns,
	}
	if _, err := p.SystemPrompt(); err != nil {
		shown.Problem = agency.AsError(err).Message
	}
	return shown
}

// newPresetsList returns the command agency presets ls.
func newPresetsList(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "ls", Short: "List the presets", Example: "  agency presets ls", Args: command.Takes(),
	}, func(*cobra.Command, []string) error {
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		presets := []preset{}
		for _, name := range slices.Sorted(maps.Keys(cfg.Presets)) {
			p := cfg.Presets[name]
			presets = append(presets, newPreset(name, &p))
		}
		return d.Print(map[string]any{"presets": presets}, func(w io.Writer) {
			if len(presets) == 0 {
				d.Chat("no presets: add a table such as [presets.worker] to %s", term.SafeLine(cfg.Path))
				return
			}
			rows := [][]string{{"PRESET", "RUNNER", "MODEL", "TAGS", "WHAT"}}
			for i := range presets {
				p := &presets[i]
				what := p.Description
				if p.Problem != "" {
					what = "cannot be used: " + p.Problem
				}
				runner := cmp.Or(p.Harness, cfg.Defaults.Runner)
				rows = append(rows, []string{p.Name, runner, command.OrDash(p.Model), command.OrDash(strings.Join(p.Tags, " ")), term.Fit(term.SafeLine(what), 60)})
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
		})
	})
}

// newPresetsShow returns the command agency presets show.
func newPresetsShow(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "show NAME", Short: "Show the settings of a preset", Example: "  agency presets show worker", Args: command.Takes("NAME"),
	}, func(_ *cobra.Command, args []string) error {
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		found, err := cfg.Preset(args[0])
		if err != nil {
			return err
		}
		text, _ := found.SystemPrompt() // its problem is shown separately
		p := newPreset(args[0], &found)
		return d.Print(map[string]any{"preset": p, "system_prompt": text}, func(w io.Writer) {
			field := func(name, value string) {
				if value != "" {
					_, _ = fmt.Fprintf(w, "%-14s %s\n", name, term.SafeLine(value))
				}
			}
			field("preset", p.Name)
			field("description", p.Description)
			field("runner", cmp.Or(p.Harness, cfg.Defaults.Runner))
			field("model", p.Model)
			field("arguments", strings.Join(p.Args, " "))
			field("environment", strings.Join(p.Env, " "))
			field("tags", strings.Join(p.Tags, " "))
			if p.Mode != "" {
				field("mode", string(p.Mode))
			} else if p.Headless {
				field("mode", "headless")
			}
			if p.SkipPermissions {
				field("permissions", "skipped: it asks for no permissions")
			}
			if p.StallAfterMS > 0 {
				field("stalled", "after "+duration.Short(time.Duration(p.StallAfterMS)*time.Millisecond)+" without a sign")
			}
			if p.StuckIntervals > 0 {
				field("stuck", fmt.Sprintf("after %d intervals without a sign of life", p.StuckIntervals))
			}
			for _, pattern := range p.ErrorPatterns {
				field("error", "a line of output like "+pattern)
			}
			field("system prompt", p.PromptFile)
			field("problem", p.Problem)
			if text != "" {
				_, _ = fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(term.SafeText(text)))
			}
		})
	})
	cmd.ValidArgsFunction = complete.Presets(d)
	return cmd
}
