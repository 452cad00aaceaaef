package maintain

import (
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

type trustOptions struct {
	*command.Deps

	repo   string
	base   string
	runRef string
	target string
	show   bool
	revoke bool
}

// NewTrust returns the command agency trust.
func NewTrust(d *command.Deps) *cobra.Command {
	o := &trustOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "trust",
		Short:   "Allow a repository's setup and checks",
		GroupID: "maintain",
		Long: `A repository's agency.toml can name a setup script, and files to copy or link into
each new worktree. agency runs, copies and links nothing before you trust it: the exact bytes of
agency.toml and of every file of the repository that the setup names. When one of them changes, you
must trust it again. The same holds for git hooks that come with the files, when core.hooksPath is
relative, for the checks of agency verify and the files that they name, and for a Dockerfile that
the image of containers is built from. --show prints them and changes nothing.`,
		Example: `  agency trust --show
  agency trust
  agency trust --revoke`,
		Args: command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.repo, "repo", "", "a `PATH` in the repository (default: the current directory)")
	f.StringVar(&o.base, "base", "", "show or trust what a run from `BASE` would do, a branch, tag or commit")
	f.StringVar(&o.runRef, "run", "", "show or trust what agency resume `RUN` would do")
	f.StringVar(&o.target, "target", "", "show or trust the checks of `BRANCH`, and the setup before them")
	f.BoolVar(&o.show, "show", false, "show what would be trusted, and change nothing")
	f.BoolVar(&o.revoke, "revoke", false, "withdraw all trust of this repository")
	_ = cmd.RegisterFlagCompletionFunc("base", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("target", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("run", complete.Runs(d))
	return cmd
}

func (o *trustOptions) run(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	of := 0
	for _, given := range []string{o.base, o.runRef, o.target} {
		if given != "" {
			of++
		}
	}
	if (o.show || of > 0) && o.revoke || of > 1 {
		return agency.Errorf(agency.CodeUsage, "--base, --run and --target exclude each other, and --revoke excludes all of them and --show").WithHint("agency trust --help")
	}
	dir := o.Absolute(o.repo)
	if o.revoke {
		resp, err := command.Call(ctx, o.Deps, api.RevokeTrust, api.RevokeTrustRequest{Dir: dir})
		if err != nil {
			return err
		}
		return o.Print(resp, func(w io.Writer) {
			if resp.Revoked == 0 {
				_, _ = fmt.Fprintln(w, "nothing was trusted")
				return
			}
			_, _ = fmt.Fprintf(w, "agency no longer trusts anything in %s\n", term.SafeLine(resp.Root))
		})
	}
	if !o.show && o.InsideRun() {
		return agency.Errorf(agency.CodePermissionDenied, "only the user can trust a setup, not a run").
			WithHint("type it in a terminal of your own: agency trust")
	}
	req := api.TrustRequest{Dir: dir, Base: o.base, Run: o.runRef, Target: o.target, Env: o.Env, Config: o.CallerConfig()}
	resp, err := command.Call(ctx, o.Deps, api.ShowTrust, req)
	if err != nil {
		return err
	}
	if !o.show && resp.Trust.Hash != "" && !resp.Trust.Trusted {
		if resp, err = command.Call(ctx, o.Deps, api.GrantTrust, api.GrantTrustRequest{Of: req, Hash: resp.Trust.Hash}); err != nil {
			return err
		}
	}
	return o.Print(resp, func(w io.Writer) { o.trustText(w, &resp) })
}

func (o *trustOptions) trustText(w io.Writer, resp *api.TrustResponse) {
	t := &resp.Trust
	if t.Hash == "" {
		_, _ = fmt.Fprintf(w, "%s wants nothing done in new worktrees\n", term.SafeLine(resp.Root))
		return
	}
	for _, part := range []struct {
		verb string
		what []string
	}{{"run", []string{strings.Join(t.Setup, " ")}}, {"copy", t.Copy}, {"link", t.Link}, {"hook", t.Hooks}, {"check", t.Checks}, {"build", []string{t.Image}}} {
		for _, what := range part.what {
			if what != "" {
				_, _ = fmt.Fprintf(w, "%s  %s\n", part.verb, term.SafeLine(what))
			}
		}
	}
	if o.show {
		for _, f := range t.Files {
			_, _ = fmt.Fprintf(w, "\n%s:\n", term.SafeLine(f.Path))
			for line := range strings.Lines(term.SafeText(f.Content)) {
				_, _ = fmt.Fprintf(w, "  %s\n", strings.TrimRight(line, "\n"))
			}
		}
		_, _ = fmt.Fprintln(w)
	}
	if t.Problem != "" {
		o.Chat("agency: note: %s", term.SafeLine(t.Problem))
	}
	switch {
	case t.Trusted:
		_, _ = fmt.Fprintf(w, "trusted: %.12s\n", t.Hash)
	case t.Changed:
		_, _ = fmt.Fprintf(w, "not trusted: it changed since it was (%.12s)\n", t.Hash)
	default:
		_, _ = fmt.Fprintf(w, "not trusted (%.12s)\n", t.Hash)
	}
	if !t.Trusted {
		o.Chat("to allow it: agency trust%s", trustFlags(o))
	}
}

func trustFlags(o *trustOptions) string {
	var flags strings.Builder
	for _, f := range []struct{ name, value string }{{"repo", o.repo}, {"base", o.base}, {"run", o.runRef}, {"target", o.target}} {
		if f.value != "" {
			_, _ = fmt.Fprintf(&flags, " --%s %s", f.name, term.SafeLine(f.value))
		}
	}
	return flags.String()
}
