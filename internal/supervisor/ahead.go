package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/supervisor/standby"
)

// takeStandby takes a worktree that was made ahead, if there is one for a creation. A setup that was
// done in it is not done again.
func (pl *planner) takeStandby(ctx context.Context, p *NewRun, commit string) {
	p.want = standby.Want{Repo: p.repo, Base: p.Spec.BaseRef, Commit: commit, Setup: pl.launcher.ahead(p)}
	if p.standby = pl.standbys.Take(ctx, p.want); p.standby != nil && p.standby.Setup {
		p.setup = nil
	}
}

// refill has a worktree made ahead for the next run like one that was created.
func (la *launcher) refill(p *NewRun) {
	la.standbys.Refill(p.want, p.run.Worktree)
}

// ahead returns the setup of a creation as it can be done before a run is known. It returns nil unless
// the repository lists the files that the setup depends on, and if it has files copied or linked,
// which may change meanwhile. For a run in a container it returns nil too: the setup runs in there.
func (la *launcher) ahead(p *NewRun) *standby.Setup {
	setup, root := p.setup, p.repo.Root
	if setup == nil || len(setup.SetupInputs) == 0 || len(setup.Setup) == 0 || len(setup.Copy)+len(setup.Link) > 0 || p.Spec.Sandbox == agency.SandboxContainer {
		return nil
	}
	env := slices.Clone(p.env)
	return &standby.Setup{
		Key: setupKey(setup, env), Inputs: setup.SetupInputs,
		Do: func(ctx context.Context, path, log string) error {
			ctx, cancel := context.WithTimeout(ctx, setup.SetupTimeout)
			defer cancel()
			if err := setup.recheck(path); err != nil {
				return err
			}
			mark := makingMark(path)
			err := la.runSetup(ctx, agency.SetupCommand{
				Argv: setup.argv(path), Dir: path, Env: append(placeEnv(env, path, root, la.Home, la.Socket), mark), Mark: mark, Log: log, Timeout: setup.SetupTimeout,
			})
			if err != nil {
				return fmt.Errorf("the setup %w; its log is %s", err, log)
			}
			return nil
		},
	}
}

// setupKey returns a hash of what a setup depends on: its content, its program and its environment.
func setupKey(setup *setup, env []string) string {
	texts := []string{setup.hash, setup.argv0}
	for _, kv := range slices.Sorted(slices.Values(env)) {
		if name, _, _ := strings.Cut(kv, "="); !denied(name, ofTerminal) {
			texts = append(texts, kv)
		}
	}
	return hashTexts(texts)
}

// ofTerminal are patterns of the names of variables that describe the terminal or the login from
// which a run was started. A setup does the same with any value of them.
var ofTerminal = []string{
	"_", "COLUMNS", "DBUS_SESSION_BUS_ADDRESS", "GPG_TTY", "INVOCATION_ID", "LINES", "OLDPWD", "PWD", "SHLVL", "SSH_*", "STY", "TERM*", "VTE_VERSION",
	"WINDOWID", "XDG_SESSION_*", "XDG_VTNR",
}
