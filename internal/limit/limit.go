// Package limit enforces the limits of an attempt: by control groups where this user may make them,
// by rlimits, by the sizes of folders in memory, and by measuring a worktree.
//
// The daemon decides what enforces each limit (How), and the wrapper carries it out (Begin): it
// makes the groups, starts the runner in them, and removes them after the last process. It writes the names
// of the groups into the attempt's folder before it makes them, so that the daemon can remove those of a
// wrapper that was killed (Remove).
package limit

import (
	"fmt"
	"os"

	"agency"
)

// What enforces a limit.
const (
	ByGroup1   = "cgroup v1"
	ByGroup2   = "cgroup v2"
	ByRlimit   = "rlimit of each process"
	ByUsers    = "rlimit of the sandbox" // of all processes in a user namespace
	BySize     = "size of each folder"
	ByMeasures = "measuring"
	ByEngine   = "container engine"
)

// How returns what enforces each limit on this machine. E_SANDBOX_UNAVAILABLE: nothing does, and
// the hint says what to do. A limit of /tmp needs a sandbox that has one.
func How(level agency.SandboxLevel, r agency.Resources) ([]agency.EnforcedLimit, error) {
	enforced := []agency.EnforcedLimit{}
	for _, l := range r.Set() {
		by, err := how(level, l.Name)
		if err != nil {
			return nil, agency.Errorf(agency.CodeSandboxUnavailable, "the limit %s %s cannot be kept here: %w", l.Name, l.Text, err).
				WithHint("%s; without the limit: --%s none", advice(), flag(l.Name))
		}
		enforced = append(enforced, agency.EnforcedLimit{Limit: l.Name, Value: l.Text, By: by})
	}
	return enforced, nil
}

func how(level agency.SandboxLevel, name agency.LimitName) (by string, err error) {
	if level == agency.SandboxContainer && name != agency.LimitDisk {
		return ByEngine, nil
	}
	switch name { //nolint:exhaustive // the others are those of groups
	case agency.LimitDisk:
		return ByMeasures, nil
	case agency.LimitOpenFiles:
		return ByRlimit, nil
	case agency.LimitTmp:
		if level == agency.SandboxWorktree || level.Shares() {
			return "", fmt.Errorf("at the sandbox level %s a run has the machine's /tmp", level)
		}
		return BySize, nil
	}
	by, err = groups().by(name)
	switch {
	case err == nil:
		return by, nil
	case name == agency.LimitMemory && canLimitMemory:
		return ByRlimit, nil
	case name == agency.LimitPids && level == agency.SandboxProcess && !level.Shares() && os.Geteuid() != 0:
		return ByUsers, nil
	}
	return "", err
}

// flag returns the name of the flag of a limit.
func flag(name agency.LimitName) string {
	if name == agency.LimitOpenFiles {
		return "open-files"
	}
	return string(name)
}

// advice returns how a user gets control groups.
func advice() string {
	if os.Geteuid() == 0 {
		return "start agency where /sys/fs/cgroup can be written"
	}
	return "start agency's daemon and tmux below your service manager, which may make control groups: systemd-run --user --scope tmux"
}
