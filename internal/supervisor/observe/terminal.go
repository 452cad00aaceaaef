package observe

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/plain"
)

// Limits of what is examined of a worker that may hang.
const (
	mostFiles     = 20_000   // entries of a worktree
	tailBytes     = 64 << 10 // of a log
	mostLineRunes = 300
)

// Terminals reads what agents show and use.
type Terminals struct {
	tmux     Tmux
	attempts Attempts
}

// NewTerminals returns a reader of terminals.
func NewTerminals(tmux Tmux, attempts Attempts) *Terminals { return &Terminals{tmux, attempts} }

// Activity measures a run. The newest change of a file is unknown when there are too many files.
func (t *Terminals) Activity(r *agency.Run) agency.Activity {
	var activity agency.Activity
	if p := r.Attempt.RunnerProcess; p != nil {
		activity.CPU = t.attempts.CPU(*p)
	}
	activity.FilesAt = newestFile(r.Worktree)
	return activity
}

// newestFile returns when something in a worktree last changed. Files of git and agency do not
// count.
func newestFile(root string) time.Time {
	var newest time.Time
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be looked at does not count
		}
		if name := entry.Name(); path != root && (name == ".git" || name == agency.DotDir) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if seen++; seen > mostFiles {
			return errors.New("too many files")
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	if err != nil {
		return time.Time{}
	}
	return newest
}

// Preview returns the last lines that a run's agent shows: from its terminal while its session
// exists, else from its log. They are safe for a terminal.
func (t *Terminals) Preview(ctx context.Context, r *agency.Run, lines int) []string {
	text := ""
	if r.Attempt.HasTerminal() && r.Attempt.Pane != "" {
		text, _ = t.tmux.Capture(ctx, r.Session(), r.Attempt.Pane)
	}
	if strings.TrimSpace(text) == "" {
		tail, _ := t.attempts.Tail(AttemptDir(r.Dir, r.Attempt.Number), "runner", tailBytes)
		text = strings.ToValidUTF8(string(tail), "�")
	}
	all := []string{}
	for line := range strings.SplitSeq(ansi.Strip(text), "\n") {
		if line = safeLine(line); line != "" {
			all = append(all, line)
		}
	}
	return all[max(0, len(all)-lines):]
}

// historyLimit is how many rows above a screen a client gets at most.
const historyLimit = 2000

// Screen returns what a run's terminal shows while its session exists, else the end of its log.
func (t *Terminals) Screen(ctx context.Context, r *agency.Run, history int) agency.Screen {
	if r.Attempt.HasTerminal() && r.Attempt.Pane != "" {
		text, screen, err := t.tmux.CaptureScreen(ctx, r.Session(), r.Attempt.Pane, min(history, historyLimit))
		if err == nil {
			screen.Rows = styledRows(text)
			screen.Stamp()
			return screen
		}
	}
	tail, _ := t.attempts.Tail(AttemptDir(r.Dir, r.Attempt.Number), "runner", tailBytes)
	screen := agency.Screen{Rows: styledRows(strings.ReplaceAll(string(tail), "\r\n", "\n"))}
	screen.Rows = screen.Rows[max(0, len(screen.Rows)-max(history, logRows)):]
	screen.Stamp()
	return screen
}

// logRows is how many rows a screen has that is the end of a log.
const logRows = 200

// Wrote returns a value that changes when the agent of a run writes to its terminal.
func Wrote(r *agency.Run) any {
	return stampOf(filepath.Join(AttemptDir(r.Dir, r.Attempt.Number), "logs", "runner.log"))
}

// safeLine removes what a terminal would obey from a line of untrusted text.
func safeLine(line string) string {
	runes := []rune(strings.TrimSpace(strings.ReplaceAll(plain.Visible(line), "\t", " ")))
	return string(runes[:min(len(runes), mostLineRunes)])
}

// Attached reports whether a user looks at a run's terminal.
func (t *Terminals) Attached(ctx context.Context, r *agency.Run) bool {
	clients, err := t.tmux.Attached(ctx, r.Session())
	return err == nil && clients > 0
}
