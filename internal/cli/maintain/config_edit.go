package maintain

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/plain"
)

// newConfigGet returns the command agency config get.
func newConfigGet(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of one setting, or all settings of a table",
		Long: `Prints the value of one setting: a text without quotes, a list as in TOML. Of a
table such as defaults it prints every setting, as lines of TOML.`,
		Example: "  agency config get defaults.runner\n  agency config get defaults",
		Args:    command.Takes("KEY"),
	}, func(_ *cobra.Command, args []string) error {
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		origins := cfg.Origins()
		keys, inside := []string{}, []config.Origin{}
		for i := range origins {
			if o := &origins[i]; o.Key == args[0] {
				return d.Print(o, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(o.Text())) })
			}
			if strings.HasPrefix(origins[i].Key, args[0]+".") {
				inside = append(inside, origins[i])
			}
			keys = append(keys, origins[i].Key)
		}
		if len(inside) > 0 {
			return d.Print(map[string]any{"settings": inside}, func(w io.Writer) {
				for _, o := range inside {
					_, _ = fmt.Fprintf(w, "%s = %s\n", o.Key, term.SafeLine(o.Value))
				}
			})
		}
		err = agency.Errorf(agency.CodeUsage, "there is no setting %q", args[0])
		if near := plain.Nearest(args[0], keys); near != "" {
			return agency.AsError(err).WithHint("did you mean: agency config get %s", near)
		}
		return agency.AsError(err).WithHint("agency config show lists them")
	})
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeKeys(d), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// completeKeys offers the keys of the configuration.
func completeKeys(d *command.Deps) []string {
	keys := []string{}
	if cfg, err := d.Config(); err == nil {
		for _, o := range cfg.Origins() {
			keys = append(keys, complete.Described(o.Key, o.Value))
		}
	}
	return keys
}

// completeValues offers the possible values of a key, if they are a short list.
func completeValues(d *command.Deps, cmd *cobra.Command, key string) []string {
	cfg, err := d.Config()
	if err != nil {
		return nil
	}
	origins := cfg.Origins()
	i := slices.IndexFunc(origins, func(o config.Origin) bool { return o.Key == key })
	switch {
	case key == "defaults.runner":
		names, _ := complete.Runners(d)(cmd, nil, "")
		return names
	case i >= 0 && (origins[i].Value == "true" || origins[i].Value == "false"):
		return []string{"true", "false"}
	}
	return nil
}

// newConfigSet returns the command agency config set.
func newConfigSet(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Write one setting into the configuration file",
		Long: `Writes one setting into the configuration file, and leaves the rest of it as it
is, comments included. VALUE is as in TOML; a text needs no quotes. agency refuses a value that is
not valid, and the file stays as it was.`,
		Example: `  agency config set defaults.runner codex
  agency config set watchdog.poll_interval_secs 10
  agency config set mcp.allow '["shell", "custom"]'`,
		Args: command.Takes("KEY", "VALUE"),
	}, func(_ *cobra.Command, args []string) error {
		was := ""
		path, err := d.EditConfig(func(cfg *config.Config, data []byte) (edited []byte, err error) {
			edited, was, err = config.Set(cfg.Path, d.Env, data, args[0], args[1])
			return edited, err
		})
		if err != nil {
			return err
		}
		return d.Print(map[string]string{"path": path, "key": args[0], "was": was}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s is set in %s", args[0], term.SafeLine(path))
			if was != "" {
				_, _ = fmt.Fprintf(w, " (was %s)", term.SafeLine(was))
			}
			_, _ = fmt.Fprintln(w)
		})
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return completeKeys(d), cobra.ShellCompDirectiveNoFileComp
		case 1:
			return completeValues(d, cmd, args[0]), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// newConfigEdit returns the command agency config edit.
func newConfigEdit(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "edit", Short: "Open the configuration file in your editor, and check it", Example: "  agency config edit", Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		cfg, err := d.Config() // a mistake in it is what the editor is for
		if cfg == nil || cfg.Path == "" {
			return err
		}
		editor := cmp.Or(d.Getenv("VISUAL"), d.Getenv("EDITOR"))
		if d.JSON || editor == "" && !d.OnTerminal() {
			return agency.Errorf(agency.CodeUsage, "there is no terminal for an editor").WithHint("agency config set KEY VALUE")
		}
		if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
			return agency.Errorf(agency.CodeConfigInvalid, "make the folder of %s: %w", cfg.Path, file.Cause(err))
		}
		words := strings.Fields(editor)
		if len(words) == 0 {
			words = []string{"vi"}
		}
		run := exec.CommandContext(cmd.Context(), words[0], append(words[1:], cfg.Path)...)
		run.Stdin, run.Stdout, run.Stderr, run.Env = d.In, os.Stdout, os.Stderr, d.Env
		if err := run.Run(); err != nil {
			return agency.Errorf(agency.CodeUsage, "the editor %s failed: %w", words[0], err).WithHint("set EDITOR to another one")
		}
		if _, err := config.Load(d.CallerConfig(), d.Env); err != nil {
			return allProblems(d, err)
		}
		return d.Print(map[string]string{"path": cfg.Path}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s is right\n", term.SafeLine(cfg.Path)) })
	})
}
