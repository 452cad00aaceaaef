package tmux

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agency"
)

// The oldest tmux that agency works with.
const (
	minMajor = 3
	minMinor = 2
)

// Version returns the version of the installed tmux, such as "3.3a". The error is E_TMUX_NOT_FOUND,
// with the command that installs tmux, when it is missing or older than 3.2.
func (t *Tmux) Version(ctx context.Context) (string, error) {
	out, err := t.run(ctx, "", "-V")
	if err != nil {
		return "", fmt.Errorf("ask tmux for its version: %w", err)
	}
	version, recent, err := parseVersion(out)
	if err != nil {
		return "", err
	}
	if !recent {
		return "", agency.Errorf(agency.CodeTmuxNotFound, "tmux %s is too old: agency needs %d.%d or newer", version, minMajor, minMinor).
			WithHint("%s", t.installHint())
	}
	return version, nil
}

var versionRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^tmux ((?:next-)?([0-9]{1,4})\.([0-9]{1,4})[a-z]?(?:-rc[0-9]*)?|openbsd-[0-9]{1,4}\.[0-9]{1,4}|master)$`)
})

// parseVersion reads the answer to tmux -V. The tmux of OpenBSD has the version of the system, and
// a build from the repository calls itself master; both count as recent.
func parseVersion(out string) (version string, recent bool, err error) {
	m := versionRule().FindStringSubmatch(strings.TrimSpace(out))
	if m == nil {
		return "", false, fmt.Errorf("read the version of tmux: unknown answer %q", readable(out))
	}
	if m[2] == "" {
		return m[1], true, nil
	}
	// The pattern leaves only digits, few enough for an int.
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	return m[1], major > minMajor || major == minMajor && minor >= minMinor, nil
}

// installHint returns the command line that installs tmux with the package manager of this machine.
func (t *Tmux) installHint() string {
	for _, manager := range []struct{ program, line string }{
		{"apt-get", "sudo apt-get install tmux"},
		{"dnf", "sudo dnf install tmux"},
		{"brew", "brew install tmux"},
	} {
		if _, ok := t.look(manager.program); ok {
			return manager.line
		}
	}
	return fmt.Sprintf("install tmux %d.%d or newer with your package manager", minMajor, minMinor)
}
