package git

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"agency"
)

// failure is the error of a failed git process.
type failure struct {
	command string // the first word of the command line
	words   string // git's last line, safe for a terminal
	stderr  string // the end of what git wrote, as it is
	full    string // a folder on a disk without room, which made it fail; empty for none
	err     error
}

func (f *failure) Error() string { return "git " + f.command + ": " + f.words }

func (f *failure) Unwrap() error { return f.err }

// As converts it to the error that users see where the caller gives it no other code.
func (f *failure) As(target any) bool {
	e, ok := target.(**agency.Error)
	if !ok || agency.Exhausted(f.err) {
		return false
	}
	if f.full != "" {
		*e = agency.Errorf(agency.CodeDiskLow, "%s", f.Error()).WithHint("make room and try again; agency gc shows the runs that can go")
		return true
	}
	*e = agency.Errorf(agency.CodeGitFailed, "%s", f.Error()).WithHint("try again; if it keeps failing: agency doctor")
	return true
}

// said reports whether git itself failed with these words.
func said(err error, words string) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && strings.Contains(f.stderr, words)
}

// exited reports whether git ended with this status.
func exited(err error, status int) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == status
}

// words returns git's own words from an error; empty when it has none.
func words(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.words
	}
	return err.Error()
}

// understand turns a failed process into an error that users know, if one fits every command.
func understand(c call, stderr string, err error) error {
	switch {
	case strings.Contains(stderr, "detected dubious ownership"), strings.Contains(stderr, "unsafe repository ("):
		e := agency.Errorf(agency.CodePermissionDenied, "git refuses the repository of %s because it belongs to another user", c.dir)
		for line := range strings.Lines(stderr) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "git config ") {
				return e.WithHint("if you trust it: %s", printable(line))
			}
		}
		return e.WithHint("if you trust it: git config --global --add safe.directory DIRECTORY")
	case strings.HasPrefix(stderr, "fatal: not a git repository (or any"):
		return agency.Errorf(agency.CodeNotGitRepo, "%s is not in a git repository", c.dir).
			WithHint("name a folder of a repository with --repo, or make one: git init")
	}
	f := &failure{command: c.args[0], words: lastLine(stderr), stderr: stderr, full: fullDisk(c, stderr), err: err}
	if _, rest, found := strings.Cut(stderr, "Unable to create '"); found {
		if lock, _, held := strings.Cut(rest, "': File exists"); held {
			f.words = fmt.Sprintf("the lock %s is in the way; if no git is at work there, remove it (agency doctor)", printable(lock))
		}
	}
	if _, rest, found := strings.Cut(stderr, "error: "); found && f.words == "adding files failed" { // the more exact message comes before it
		first, _, _ := strings.Cut(rest, "\n")
		f.words = printable(first)
	}
	if f.words == "" {
		f.words = err.Error()
	}
	if f.full != "" {
		f.words = "the disk of " + printable(f.full) + " is full: " + f.words
	}
	return f
}

// unwritten are git's messages about a file that it could not write. They seldom name the cause.
var unwritten = []string{"No space left on device", "couldn't write", "could not write", "unable to write", "cannot write", "write error"}

// leastRoom is the free space, in bytes, below which a disk is the reason why git could not write.
const leastRoom = 1 << 20

// fullDisk returns a folder of a failed process whose disk has no room, if that can be why it
// failed; otherwise "".
func fullDisk(c call, stderr string) string {
	if !slices.ContainsFunc(unwritten, func(words string) bool { return strings.Contains(stderr, words) }) {
		return ""
	}
	for _, path := range []string{c.site.worktree, c.site.gitDir, filepath.Join(c.site.commonDir, "objects"), c.dir} {
		var disk unix.Statfs_t
		if unix.Statfs(path, &disk) == nil && int64(disk.Bavail)*int64(disk.Bsize) < leastRoom { //nolint:unconvert,nolintlint // other types on another system
			return path
		}
	}
	return ""
}

// lastLine returns the last line that is not empty, without git's own prefix.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	line := printable(lines[len(lines)-1])
	for _, prefix := range []string{"fatal: ", "error: ", "warning: "} {
		line = strings.TrimPrefix(line, prefix)
	}
	return line
}

// printable makes what git quotes from a repository safe for a terminal: no control characters,
// nothing that turns the direction of writing, and not too long.
func printable(s string) string {
	const most = 400
	clean := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s))
	if len(clean) > most {
		return string(clean[:most]) + "…"
	}
	return string(clean)
}

// head keeps the beginning of a stream and refuses the rest, which ends the process that writes it.
type head struct {
	strings.Builder
	limit int
	full  bool
	ended bool // the stream came to its end
}

// ReadFrom keeps the beginning of a stream that ends.
func (h *head) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{h}, r)
	h.ended = err == nil
	return n, err
}

func (h *head) Write(p []byte) (int, error) {
	if h.Len()+len(p) > h.limit {
		h.full = true
		_, _ = h.Builder.Write(p[:max(0, h.limit-h.Len())])
		return 0, errors.New("too long")
	}
	return h.Builder.Write(p)
}

// tail keeps the end of a stream.
type tail struct {
	kept  []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}
