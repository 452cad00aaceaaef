// Package sandbox turns the sandbox of a run into the command line that enforces it, with
// bubblewrap; it is the first program inside, and it tries what a sandbox enforces on this host.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/limit"
	"agency/internal/plain"
)

// Host makes the sandboxes of this machine. It remembers which levels work.
type Host struct {
	Program string // the path of agency's own program, which needs no libraries
	Tmp     string // a folder that each daemon empties at its start

	mu    sync.Mutex
	works map[agency.SandboxLevel]bool // the levels that were tried, and work
}

// bubblewrap is the program that makes namespaces and mounts.
const bubblewrap = "bwrap"

// Check returns E_SANDBOX_UNAVAILABLE, with what to do, unless this host can enforce the level.
func (h *Host) Check(ctx context.Context, level agency.SandboxLevel) error {
	if level != agency.SandboxProcess && level != agency.SandboxLandlock {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.works[level] {
		return nil
	}
	refused := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level %s: "+format, append([]any{level}, args...)...)
	}
	const nearest = "; without it: --sandbox landlock, which is weaker, or --sandbox worktree, which does not keep the agent from your files"
	switch {
	case level.Shares() && level == agency.SandboxProcess: // with a part of macOS
	case !supported:
		return refused("it needs Linux").WithHint("the level that works here is process")
	case level == agency.SandboxProcess:
		if _, err := exec.LookPath(bubblewrap); err != nil {
			return refused("bubblewrap is not installed, or not in the PATH of the daemon").
				WithHint("sudo apt-get install bubblewrap, or sudo dnf install bubblewrap" + nearest)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd, err := h.try(ctx, level, agency.NetworkNone)
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		words := plain.OneLine(strings.TrimSpace(string(out)))
		if words == "" {
			words = err.Error()
		}
		switch {
		case level == agency.SandboxLandlock:
			return refused("the kernel cannot make it here: %s", words).WithHint("it needs Linux 6.12 or newer with Landlock; without it: --sandbox process, or --sandbox worktree, which does not keep the agent from your files")
		case level.Shares():
			return refused("sandbox-exec cannot make it here: %s", words).WithHint("a daemon that is in a sandbox itself can start none: start it outside; without it: --sandbox worktree, which does not keep the agent from your files")
		}
		return refused("bubblewrap cannot make it here: %s", words).WithHint("%s%s", advice(words), nearest)
	}
	if h.works == nil {
		h.works = map[agency.SandboxLevel]bool{}
	}
	h.works[level] = true
	return nil
}

// Limits returns what enforces each limit of an attempt at a level.
func (*Host) Limits(level agency.SandboxLevel, r agency.Resources) ([]agency.EnforcedLimit, error) {
	return limit.How(level, r)
}

// advice returns what to do about an error of bubblewrap.
func advice(words string) string {
	if data, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && strings.TrimSpace(string(data)) == "1" {
		return "AppArmor forbids user namespaces: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile for bwrap"
	}
	if data, err := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone"); err == nil && strings.TrimSpace(string(data)) == "0" {
		return "user namespaces are forbidden: sudo sysctl kernel.unprivileged_userns_clone=1"
	}
	if strings.Contains(words, "proc") {
		return "in a container, start that with --security-opt systempaths=unconfined --security-opt seccomp=unconfined"
	}
	return "what it can do here: bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc true"
}

// system returns the folders of the system that every sandbox reads.
func system() []mount {
	mounts := []mount{}
	for _, path := range systemFolders {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			mounts = append(mounts, mount{"--ro-bind", path, path})
		} else if to, err := os.Readlink(path); err == nil {
			mounts = append(mounts, mount{"--symlink", to, path})
		}
	}
	// The names of hosts are often looked up by a file elsewhere.
	if to, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && !strings.HasPrefix(to, "/etc/") {
		mounts = append(mounts, mount{"--ro-bind", to, to})
	}
	return mounts
}

// mostHidden is how many entries etc may have.
const mostHidden = 100_000

// hidden returns mounts over everything in etc that other users of the machine may not read: the
// agent has the user's rights, which may be root's. What the user may not read needs no mount; any other
// error could leave a secret open.
func hidden() ([]mount, error) {
	mounts, seen := []mount{}, 0
	err := filepath.WalkDir(etc, func(path string, entry fs.DirEntry, err error) error {
		if seen++; seen > mostHidden {
			return errors.New(etc + " has too many files")
		}
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission): // the agent cannot read it either
			return nil
		case err != nil:
			return fmt.Errorf("look for what a sandbox must hide: %w", err)
		}
		switch perm := info.Mode().Perm(); {
		case info.Mode()&fs.ModeSymlink != 0:
		case info.IsDir() && perm&0o005 != 0o005:
			mounts = append(mounts, mount{inMemory, "", path})
			return fs.SkipDir
		case !info.IsDir() && perm&0o004 == 0:
			mounts = append(mounts, mount{"--ro-bind", os.DevNull, path})
		}
		return nil
	})
	return mounts, err
}
