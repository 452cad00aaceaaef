package maintain

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/file"
)

// newConfigGet returns the command agency config get.
func newConfigGet(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "get KEY", Short: "Print the value of one setting", Example: "  agency config get defaults.runner", Args: command.Takes("KEY"),
	}, func(_ *cobra.Command, args []string) error {
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		origins := cfg.Origins()
		keys := []string{}
		for i := range origins {
			if o := &origins[i]; o.Key == args[0] {
				return d.Print(o, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(o.Value)) })
			}
			keys = append(keys, origins[i].Key)
		}
		err = agency.Errorf(agency.CodeUsage, "there is no setting %q", args[0])
		if near := agency.Nearest(args[0], keys); near != "" {
			return agency.AsError(err).WithHint("did you mean: agency config get %s", near)
		}
		return agency.AsError(err).WithHint("agency config show lists them")
	})
	cmd.ValidArgsFunction = completeKeys(d)
	return cmd
}

// completeKeys offers the keys of the configuration for the first argument.
func completeKeys(d *command.Deps) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		keys := []string{}
		if cfg, err := d.Config(); err == nil && len(args) == 0 {
			for _, o := range cfg.Origins() {
				keys = append(keys, o.Key)
			}
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}
}

// newConfigSet returns the command agency config set.
func newConfigSet(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Write one setting into the configuration file",
		Long: `Writes one setting into the configuration file, and leaves the rest of it as it
is, comments included. VALUE is as in TOML; a text needs no quotes. A value that is not valid is
refused, and the file stays as it was.`,
		Example: `  agency config set defaults.runner codex
  agency config set watchdog.poll_interval_secs 10
  agency config set mcp.allow '["shell", "custom"]'`,
		Args: command.Takes("KEY", "VALUE"),
	}, func(_ *cobra.Command, args []string) error {
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(cfg.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return agency.Errorf(agency.CodeConfigInvalid, "read %s: %w", cfg.Path, file.Cause(err))
		}
		edited, was, err := config.Set(cfg.Path, d.Env, data, args[0], args[1])
		if err != nil {
			return err
		}
		target := cfg.Path
		if to, err := filepath.EvalSymlinks(cfg.Path); err == nil {
			target = to // users who keep the configuration elsewhere link to it
		}
		if err = os.MkdirAll(filepath.Dir(target), 0o700); err == nil {
			err = file.WriteDurable(target, edited)
		}
		if err != nil {
			return agency.Errorf(agency.CodeConfigInvalid, "write %s: %w", cfg.Path, file.Cause(err))
		}
		return d.Print(map[string]string{"path": cfg.Path, "key": args[0], "was": was}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s is set in %s", args[0], term.SafeLine(cfg.Path))
			if was != "" {
				_, _ = fmt.Fprintf(w, " (was %s)", term.SafeLine(was))
			}
			_, _ = fmt.Fprintln(w)
		})
	})
	cmd.ValidArgsFunction = completeKeys(d)
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
