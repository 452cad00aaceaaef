package scaffold

import (
	"bytes"
	_ "embed" // for the templates
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/diff"

	"agency"
	"agency/internal/file"
)

//go:embed templates/agency.toml
var projectTemplate string

//go:embed templates/CLAUDE.md
var claudeMD string

//go:embed templates/meta.yaml
var metaTemplate string

//go:embed templates/state.json
var stateTemplate string

// ProjectTemplate is an agency.toml with only the defaults.
func ProjectTemplate() []byte { return []byte(projectTemplate) }

// ClaudeMD is the file in a repository's root in which Claude Code looks for instructions.
const ClaudeMD = "CLAUDE.md"

// Action is what init does, or would do, to one path.
type Action string

// The actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Moved   Action = "moved"
	Exists  Action = "exists" // it stays as it is
	Kept    Action = "kept"   // it cannot be moved, because its new name is taken
)

// Change is one path of a repository and what init does to it.
type Change struct {
	Path   string // in the repository
	Action Action
	From   string // of a move
	Backup string // where the old content goes; empty when it is not kept
	old    []byte
	data   []byte
}

// Diff returns the change of a file's content as a patch; empty when no content is written.
func (c *Change) Diff() string {
	if c.Action != Created && c.Action != Changed {
		return ""
	}
	from := "a/" + c.Path
	if c.Action == Created {
		from = "/dev/null"
	}
	patch := diff.Diff(from, c.old, "b/"+c.Path, c.data)
	_, patch, _ = bytes.Cut(patch, []byte("\n")) // the first line is about the command that made the patch
	return string(patch)
}

// ProjectFiles describes the files that init wants in a repository.
type ProjectFiles struct {
	Config []byte // of agency.toml
	Window bool   // the templates of agent_runs/, which is kept
	// Standard wants the folders of the standard layout. Archive moves what is in ai_docs/scout to
	// scout_outputs/archive.
	Standard bool
	Archive  bool
	Force    bool // write the templates again, also changed ones
	Backup   bool // keep a replaced agency.toml
}

const (
	scoutDir   = "ai_docs/scout"
	archiveDir = "scout_outputs/archive"
)

// PlanProject returns the changes that init would make to the worktree in root. It writes nothing.
// The repository is not trusted: E_INVALID_PATH names an entry that is not a file or folder where
// one is needed.
func PlanProject(root string, want ProjectFiles) ([]Change, error) {
	var changes []Change
	add := func(c Change, err error) error {
		changes = append(changes, c)
		return err
	}
	if err := add(planFile(root, agency.ProjectFile, want.Config, true, want.Backup)); err != nil {
		return nil, err
	}
	if err := add(planClaude(root)); err != nil {
		return nil, err
	}
	if err := add(planIgnore(root, want.Window)); err != nil {
		return nil, err
	}
	if want.Window {
		for _, t := range []struct{ rel, text string }{
			{"agent_runs/.template/meta.yaml", metaTemplate}, {"agent_runs/.template/state.json", stateTemplate},
		} {
			if err := add(planFile(root, t.rel, []byte(t.text), want.Force, false)); err != nil {
				return nil, err
			}
		}
	}
	if want.Standard {
		for _, dir := range []string{"specs", archiveDir, "ai_docs"} {
			if err := add(planFolder(root, dir)); err != nil {
				return nil, err
			}
		}
	}
	if want.Archive {
		moves, err := planArchive(root)
		return append(changes, moves...), err
	}
	return changes, nil
}

// planFile plans a file with this content. An existing file stays unless replace.
func planFile(root, rel string, data []byte, replace, backup bool) (Change, error) {
	c := Change{Path: rel, Action: Created, data: data}
	old, err := file.ReadBeneath(root, rel, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, inTheWay(rel, err)
	case bytes.Equal(old, data) || !replace:
		c.Action = Exists
		return c, nil
	}
	c.Action, c.old = Changed, old
	if backup {
		c.Backup = rel + ".bak"
	}
	return c, nil
}

// planClaude plans a CLAUDE.md, and keeps any existing entry of that name.
func planClaude(root string) (Change, error) {
	c := Change{Path: ClaudeMD, Action: Created, data: []byte(claudeMD)}
	_, err := file.StatBeneath(root, ClaudeMD)
	switch {
	case err == nil:
		c.Action = Exists
	case !errors.Is(err, fs.ErrNotExist):
		return c, inTheWay(ClaudeMD, err)
	}
	return c, nil
}

// The lines around what agency wrote into a .gitignore.
const (
	ignoreBegin = "# >>> agency"
	ignoreEnd   = "# <<< agency"
)

// planIgnore plans the marked block in .gitignore, in place of an existing one.
func planIgnore(root string, window bool) (Change, error) {
	c := Change{Path: ".gitignore", Action: Created}
	old, err := file.ReadBeneath(root, c.Path, 1<<20)
	switch {
	case err == nil:
		c.Action, c.old = Changed, old
	case !errors.Is(err, fs.ErrNotExist):
		return c, inTheWay(c.Path, err)
	}
	lines := []string{ignoreBegin, "/.agency/", "/agent_runs/", ignoreEnd}
	if window {
		lines = []string{ignoreBegin, "/.agency/", "/agent_runs/*", "!/agent_runs/.template/", ignoreEnd}
	}
	c.data = putBlock(old, lines)
	if bytes.Equal(old, c.data) {
		c.Action = Exists
	}
	return c, nil
}

// putBlock replaces the marked block of a text, or adds it at the end. A block without its last
// line is only its first line.
func putBlock(text []byte, block []string) []byte {
	eol := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		eol = "\r\n"
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line)
	}
	begin, end := -1, -1
	for i, line := range lines {
		switch strings.TrimRight(line, "\r\n") {
		case ignoreBegin:
			if begin < 0 {
				begin = i
			}
		case ignoreEnd:
			if begin >= 0 && end < 0 {
				end = i
			}
		}
	}
	fresh := strings.Join(block, eol) + eol
	switch {
	case begin >= 0 && end > begin:
		return []byte(strings.Join(lines[:begin], "") + fresh + strings.Join(lines[end+1:], ""))
	case begin >= 0:
		return []byte(strings.Join(lines[:begin], "") + fresh + strings.Join(lines[begin+1:], ""))
	case len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")):
		return []byte(string(text) + eol + eol + fresh)
	case len(text) > 0:
		return []byte(string(text) + eol + fresh)
	default:
		return []byte(fresh)
	}
}

// planFolder plans a folder, with a file in it that makes git keep it.
func planFolder(root, rel string) (Change, error) {
	c := Change{Path: rel + "/", Action: Created}
	info, err := file.StatBeneath(root, rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err == nil && !info.IsDir():
		err = file.ErrNotRegular
	}
	if err != nil {
		return c, inTheWay(rel, err)
	}
	c.Action = Exists
	return c, nil
}

// planArchive plans the move of everything in ai_docs/scout to the archive.
func planArchive(root string) ([]Change, error) {
	names, err := Scouts(root)
	if err != nil {
		return nil, err
	}
	var moves []Change
	for _, name := range names {
		c := Change{Path: archiveDir + "/" + name, Action: Moved, From: scoutDir + "/" + name}
		switch _, err := file.StatBeneath(root, c.Path); {
		case err == nil:
			c.Path, c.Action, c.From = c.From, Kept, ""
		case !errors.Is(err, fs.ErrNotExist):
			return nil, inTheWay(c.Path, err)
		}
		moves = append(moves, c)
	}
	return moves, nil
}

// Scouts returns the names in ai_docs/scout, which the standard layout archives; none when it is
// not a folder.
func Scouts(root string) ([]string, error) {
	info, err := file.StatBeneath(root, scoutDir)
	if err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // what is not there, or a link, has nothing to archive
	}
	entries, err := os.ReadDir(filepath.Join(root, scoutDir))
	if err != nil {
		return nil, inTheWay(scoutDir, err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// ApplyProject makes the planned changes. It can be repeated: an interrupted change is planned
// again.
func ApplyProject(root string, changes []Change) error {
	moved := false
	for i := range changes {
		if err := apply(root, &changes[i]); err != nil {
			return err
		}
		moved = moved || changes[i].Action == Moved
	}
	if names, err := Scouts(root); moved && err == nil && len(names) == 0 {
		return removeEmpty(root, scoutDir)
	}
	return nil
}

func apply(root string, c *Change) error {
	switch {
	case c.Action == Exists || c.Action == Kept:
		return nil
	case c.Action == Moved:
		return move(root, c.From, c.Path)
	case strings.HasSuffix(c.Path, "/"):
		return inTheWay(c.Path, file.WriteBeneath(root, c.Path+".gitkeep", nil, 0o644))
	}
	perm := fs.FileMode(0o644)
	if info, err := file.StatBeneath(root, c.Path); err == nil && info.Mode().IsRegular() {
		perm = info.Mode().Perm()
	}
	if c.Backup != "" {
		old, err := file.ReadBeneath(root, c.Path, 1<<20)
		if err == nil {
			err = file.WriteBeneath(root, c.Backup, old, perm)
		}
		if err != nil {
			return inTheWay(c.Backup, err)
		}
	}
	if c.Path == ClaudeMD {
		err := file.CreateBeneath(root, c.Path, c.data, perm)
		if errors.Is(err, fs.ErrExist) {
			err = nil // another process was faster, and its file is never overwritten
		}
		return inTheWay(c.Path, err)
	}
	return inTheWay(c.Path, file.WriteBeneath(root, c.Path, c.data, perm))
}

// move renames a file or folder beneath root, and overwrites nothing.
func move(root, from, to string) error {
	for _, rel := range []string{from, filepath.Dir(to)} { // neither is reached through a link
		if _, err := file.StatBeneath(root, rel); err != nil {
			return inTheWay(rel, err)
		}
	}
	if _, err := file.StatBeneath(root, to); !errors.Is(err, fs.ErrNotExist) {
		return inTheWay(to, errors.Join(err, fs.ErrExist))
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return inTheWay(root, err)
	}
	defer func() { _ = dir.Close() }()
	return inTheWay(to, dir.Rename(from, to))
}

func removeEmpty(root, rel string) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return inTheWay(root, err)
	}
	defer func() { _ = dir.Close() }()
	return inTheWay(rel, dir.Remove(rel))
}

// inTheWay returns what keeps init from a path; a nil error stays nil.
func inTheWay(rel string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			err = errno // without the name of the temporary file
		}
		return agency.Errorf(agency.CodePermissionDenied, "%s cannot be read or written: %w", rel, err)
	case errors.Is(err, file.ErrNotRegular), errors.Is(err, file.ErrTooLarge), errors.Is(err, fs.ErrExist),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return agency.Errorf(agency.CodeInvalidPath, "%s is in the way: %w", rel, err).
			WithHint("agency follows no links out of a repository; move it away and try again")
	default:
		return fmt.Errorf("write %s: %w", rel, err)
	}
}

// marks are the files that identify a type of project, in order of precedence.
var marks = []struct{ name, typ string }{
	{"go.mod", "go"},
	{"Cargo.toml", "rust"},
	{"package.json", "node"},
	{"pyproject.toml", "python"},
	{"setup.py", "python"},
	{"requirements.txt", "python"},
	{"pom.xml", "java"},
	{"build.gradle", "java"},
	{"build.gradle.kts", "java"},
	{"Gemfile", "ruby"},
	{"composer.json", "php"},
	{"CMakeLists.txt", "cpp"},
}

// ProjectType guesses the type of the project in root by the files there; "other" when none does.
func ProjectType(root string) string {
	for _, m := range marks {
		if info, err := file.StatBeneath(root, m.name); err == nil && info.Mode().IsRegular() {
			return m.typ
		}
	}
	return "other"
}
