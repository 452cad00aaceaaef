package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

// screensLimit is the largest file of a user's patterns, in bytes.
const screensLimit = 256 << 10

// Screens reads terminals by the user's own patterns first, which may be for any runner, and then
// by those of the registry. A file of patterns that cannot be read is logged and not used.
type Screens struct {
	Dir string // of the user's own patterns, RUNNER.toml each
	Log *slog.Logger
}

// Files returns the paths of the user's own patterns.
func (s Screens) Files() []string {
	paths, _ := filepath.Glob(s.path("*")) // its only error is a bad pattern
	return paths
}

// CheckFile returns the error of one of Files, or nil.
func (s Screens) CheckFile(path string) error {
	_, err := s.own(strings.TrimSuffix(filepath.Base(path), ".toml"))
	return err
}

// ReadsScreen reports whether anything can be read from the terminal of a runner.
func (s Screens) ReadsScreen(r agency.Runner) bool {
	if ReadsScreen(r.Kind) {
		return true
	}
	_, err := os.Lstat(s.path(r.Name))
	return err == nil
}

// ShowsReady reports whether the terminal of a runner shows that it takes input.
func (s Screens) ShowsReady(r agency.Runner) bool {
	own, err := s.own(r.Name) // Screen logs what cannot be read
	return ReadsScreen(r.Kind) || err == nil && own.ShowReady()
}

// Screen returns the evidence that the lines of a runner's terminal give.
func (s Screens) Screen(r agency.Runner, lines []string) []agency.Evidence {
	if evidence := s.readable(r.Name).Read(lines); evidence != nil {
		return evidence
	}
	return Screen(r.Kind, lines)
}

// Sight returns what the lines of a runner's terminal mean for a message: an input box by the
// user's patterns takes one.
func (s Screens) Sight(r agency.Runner, lines []string) agency.Sight {
	sight := Sight(r.Kind, lines)
	for _, e := range s.readable(r.Name).Read(lines) {
		sight.Dialog, sight.Boxless = "", false
		if e.Signal == agency.SignalAsked {
			sight.Dialog = cmp.Or(e.Text, e.Event)
		}
	}
	return sight
}

func (s Screens) path(runner string) string { return filepath.Join(s.Dir, runner+".toml") }

// readable returns the user's patterns for a runner, or none when they cannot be read.
func (s Screens) readable(runner string) agent.Patterns {
	own, err := s.own(runner)
	if err != nil {
		s.Log.Warn("read patterns for terminals", "runner", runner, "err", err)
	}
	return own
}

// own returns the user's patterns for a runner; without a file there are none.
func (s Screens) own(runner string) (agent.Patterns, error) {
	path := s.path(runner)
	data, err := file.ReadRegular(path, screensLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	patterns, err := agent.ParseScreen(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return patterns, nil
}
