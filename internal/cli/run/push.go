package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"agency/internal/file"
	"agency/internal/forge"
	"agency/internal/plain"
)

// remoteOptions are the flags and dependencies of the commands that reach a remote.
type remoteOptions struct {
	*command.Deps

	remote string
	limit  time.Duration
}

func (o *remoteOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.remote, "remote", "", "push to `REMOTE`, its name or a URL (default: [landing] remote, or origin)")
	_ = cmd.RegisterFlagCompletionFunc("remote", complete.Remotes(o.Deps))
	command.DurationVar(f, &o.limit, "timeout", 5*time.Minute, "give up after this `DURATION`")
}

// bounded returns a context that ends at the time limit.
func (o *remoteOptions) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, o.limit, duration.Over("no end", o.limit))
}

// inTime returns the error of a command; it is E_WAIT_TIMEOUT when the time limit ended the
// command.
func (o *remoteOptions) inTime(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) || agency.AsError(err).Code != agency.CodeInternal {
		return err
	}
	return agency.Errorf(agency.CodeWaitTimeout, "%w", context.Cause(ctx)).WithHint("try again, with a longer --timeout")
}

// target returns the remote of the flags, with a relative path made absolute.
func (o *remoteOptions) target() string {
	if strings.HasPrefix(o.remote, "./") || strings.HasPrefix(o.remote, "../") {
		return o.Absolute(o.remote)
	}
	return o.remote
}

// open makes what git needs to reach a remote. The settings for that can name programs, so they are
// read from the data root, never taken from the answer of the daemon.
func (o *remoteOptions) open(ctx context.Context, place *api.Place, commit string) (*forge.Remote, error) {
	at := forge.Place{CommonDir: place.CommonDir, Remote: place.Remote, URL: place.URL, SHA256: len(commit) == 64}
	cfg, err := o.Places()
	if err != nil {
		return nil, err
	}
	if place.Settings != "" {
		path := filepath.Join(cfg.Home, "git", filepath.Base(place.Settings))
		if at.Settings, err = file.ReadBeneath(filepath.Dir(path), filepath.Base(path), 1<<20); err != nil {
			return nil, fmt.Errorf("read how git reaches the remotes: %w", err)
		}
		if sum := sha256.Sum256(at.Settings); hex.EncodeToString(sum[:]) != place.Settings {
			return nil, agency.Errorf(agency.CodeTrustRequired, "%s has changed since agency wrote it", path).WithHint("agency daemon logs")
		}
	}
	return forge.Open(ctx, at, filepath.Join(cfg.Home, config.TempDir), o.Env)
}

// pushResult is what agency push prints.
type pushResult struct {
	Push    agency.Push `json:"push"`
	Was     string      `json:"was"`     // the commit that the branch had; empty when it is new
	Already bool        `json:"already"` // the remote had the commit before
	Said    string      `json:"said"`    // what the remote wrote; untrusted
}

// pushPlan pushes what the daemon planned, and asks it to record the push, before and after.
func (o *remoteOptions) pushPlan(ctx context.Context, plan *api.PlanPushResponse) (*pushResult, error) {
	return o.pushWith(ctx, plan, func(*forge.Push) {})
}

// pushWith is pushPlan with a change of the push.
func (o *remoteOptions) pushWith(ctx context.Context, plan *api.PlanPushResponse, change func(*forge.Push)) (*pushResult, error) {
	remote, err := o.open(ctx, &plan.Place, plan.Commit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = remote.Close() }()
	record := api.RecordPushRequest{Run: string(plan.Run.ID), URL: plan.Place.URL, Branch: plan.Branch, Commit: plan.Commit}
	wanted := forge.Push{Branch: plan.Branch, Commit: plan.Commit, Known: plan.Known, Rewrite: plan.Rewrite}
	change(&wanted)
	if wanted.Ref != "" {
		record.Branch = wanted.Ref
	}
	pushed, err := remote.Push(ctx, wanted, func(created bool) error {
		record.Created = created
		_, err := command.Call(ctx, o.Deps, api.RecordPush, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	record.Done = true
	resp, err := command.Call(context.WithoutCancel(ctx), o.Deps, api.RecordPush, record)
	if err != nil {
		return nil, err
	}
	return &pushResult{Push: resp.Push, Was: pushed.Was, Already: pushed.Already, Said: pushed.Said}, nil
}

// NewPush returns the command agency push.
func NewPush(d *command.Deps) *cobra.Command {
	o := &remoteOptions{Deps: d}
	branch := ""
	cmd := command.New(cobra.Command{
		Use:     "push RUN",
		Short:   "Push the commits of a run to a remote",
		GroupID: "run",
		Long: `Pushes the commits of a run to a branch of the same name, with your git, your
credentials and your environment. The remote must still have what agency saw there when the push
arrives, so nothing that others pushed is lost. agency replaces a branch there only if it made that
branch itself, when the agent has rewritten its commits.

agency refuses to push when the agent did not commit all its work. It also refuses a remote whose
URL has changed since the run began, because an agent can change it. No hook runs, not even your
pre-push hook.`,
		Example: `  agency push fix-login
  agency push fix-login --remote fork --branch login`,
		Args:              command.Takes("RUN"),
		ValidArgsFunction: complete.Runs(d),
	}, func(cmd *cobra.Command, args []string) error {
		ctx, cancel := o.bounded(cmd.Context())
		defer cancel()
		plan, err := command.Call(ctx, d, api.PlanPush, api.PlanPushRequest{Run: args[0], Remote: o.target(), Branch: branch})
		if err != nil {
			return o.inTime(ctx, err)
		}
		result, err := o.pushPlan(ctx, &plan)
		if err != nil {
			return o.inTime(ctx, err)
		}
		return d.Print(result, func(w io.Writer) { printPush(w, &plan, result) })
	})
	o.flags(cmd)
	cmd.Flags().StringVar(&branch, "branch", "", "push to `BRANCH` of the remote (default: the name of the run's branch)")
	return cmd
}

func printPush(w io.Writer, plan *api.PlanPushResponse, result *pushResult) {
	p := &result.Push
	what, remote := term.SafeLine(p.Branch), term.SafeLine(plain.SafeURL(plan.Place.Remote))
	if p.URL != remote {
		remote = fmt.Sprintf("%s (%s)", remote, term.SafeLine(p.URL))
	}
	switch {
	case result.Already:
		_, _ = fmt.Fprintf(w, "%s has %s at %.12s already\n", remote, what, result.Was)
	case result.Was == "":
		_, _ = fmt.Fprintf(w, "%s of %s is new, at %.12s\n", what, remote, p.Commit)
	default:
		_, _ = fmt.Fprintf(w, "%s of %s is at %.12s, was at %.12s\n", what, remote, p.Commit, result.Was)
	}
}
