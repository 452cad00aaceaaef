package git

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// A standby is a worktree that is made before the run that works in it. Its HEAD is detached, so no
// branch is in use. No program of the repository's present configuration runs in it: it is checked
// out with the configuration that Record kept.

// CheckoutKey returns a hash of what decides the content of the files of a commit when they are
// checked out: with the same key and commit, two worktrees have the same content. It is empty where
// the commit alone does not decide that: where git would run hooks, fetch, or check out a part of
// the files.
func (g *Worktrees) CheckoutKey(ctx context.Context, repo agency.Repo) (string, error) {
	list, attributes, plain, err := g.plainCheckout(ctx, repo)
	if err != nil || !plain {
		return "", err
	}
	var text strings.Builder
	for _, s := range list {
		if s.in(noPrograms) || s.in(programs) {
			fmt.Fprintf(&text, "%s\n%s\n%t\x00", s.key, s.value, s.bare)
		}
	}
	return digest(repo.GitConfig + "\x00" + repo.GitPrograms + "\x00" + text.String() + stamps(attributes)), nil
}

// plainCheckout returns the settings that count in a repository, and its files of attributes. plain
// is false where the commit alone does not decide the content of a worktree.
func (g *Worktrees) plainCheckout(ctx context.Context, repo agency.Repo) (list []setting, attributes []string, plain bool, err error) {
	if repo.Hooks != "" {
		return nil, nil, false, nil
	}
	for _, path := range []string{"config.worktree", "info/sparse-checkout"} {
		if _, err := os.Lstat(filepath.Join(repo.CommonDir, path)); !missing(err) {
			return nil, nil, false, err
		}
	}
	if list, err = g.effective(ctx, repo.CommonDir); err != nil {
		return nil, nil, false, fmt.Errorf("read the git configuration of %s: %w", repo.Root, err)
	}
	hooks := filepath.Join(repo.CommonDir, "hooks")
	attributes = []string{"/etc/gitattributes", filepath.Join(configHome(), "git", "attributes"), filepath.Join(repo.CommonDir, "info", "attributes")}
	for _, s := range list {
		_, _, name := s.parts()
		path := s.value
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(os.Getenv("HOME"), rest)
		}
		switch {
		case s.key == "core.hookspath" && !filepath.IsAbs(path), s.in(noPrograms) && name == "promisor",
			s.hook() != "" && name == "event" && slices.Contains(CheckoutHooks, s.value):
			return nil, nil, false, nil
		case s.key == "core.hookspath":
			hooks = path
		case s.key == "core.attributesfile":
			attributes = append(attributes, path)
		}
	}
	for _, name := range CheckoutHooks {
		info, err := os.Stat(filepath.Join(hooks, name)) //nolint:gosec // the user's configuration names the folder
		if !missing(err) && (err != nil || info.Mode().Perm()&0o111 != 0) {
			return nil, nil, false, err
		}
	}
	return list, attributes, true, nil
}

// effective returns the settings that count in a repository: the system's, the user's and its own.
// It asks git only when a file that holds one has changed since.
func (g *program) effective(ctx context.Context, commonDir string) ([]setting, error) {
	usual := []string{
		os.Getenv("GIT_CONFIG_GLOBAL"), os.Getenv("GIT_CONFIG_SYSTEM"), "/etc/gitconfig", filepath.Join(os.Getenv("HOME"), ".gitconfig"),
		filepath.Join(configHome(), "git", "config"), filepath.Join(commonDir, "config"),
	}
	g.mu.Lock()
	known, ok := g.whole[commonDir]
	g.mu.Unlock()
	if ok && known.stamps == stamps(known.files) {
		return known.settings, nil
	}
	before := stamps(usual)
	out, err := g.do(ctx, call{
		dir: commonDir, site: site{gitDir: commonDir, commonDir: commonDir},
		args: []string{"config", "--list", "-z", "--includes", "--show-origin"},
	})
	if err != nil {
		return nil, err
	}
	whole := origins{files: usual}
	for fields := strings.Split(out, "\x00"); len(fields) > 1; fields = fields[2:] {
		path, isFile := strings.CutPrefix(fields[0], "file:")
		if !isFile {
			continue // from the command line
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(commonDir, path)
		}
		if !slices.Contains(whole.files, path) {
			whole.files = append(whole.files, path)
		}
		for _, s := range parseSettings(fields[1]) {
			whole.settings = append(whole.settings, s)
			included, known := s.includes(filepath.Dir(path))
			if whole.changes = whole.changes || !known; included != "" && !slices.Contains(whole.files, included) {
				whole.files = append(whole.files, included) // it may be created later
			}
		}
	}
	whole.stamps = stamps(whole.files)
	if stamps(usual) == before && !whole.changes { // otherwise git may have read the files as they were before
		g.mu.Lock()
		defer g.mu.Unlock()
		g.whole[commonDir] = whole
	}
	return whole.settings, nil
}

// origins are the settings that count in a repository, with the files that they came from.
type origins struct {
	settings []setting
	files    []string
	stamps   string // of the files
	changes  bool   // what counts can change without a change of the files
}

// includes returns the file that a setting of a file in dir includes; empty when it includes none.
// known is false when it is unknown which file that is, or when git will read it.
func (s setting) includes(dir string) (path string, known bool) {
	section, sub, name := s.parts()
	if section != "include" && section != "includeif" || name != "path" {
		return "", true
	}
	path, inHome := strings.CutPrefix(s.value, "~/")
	switch {
	case inHome:
		path = filepath.Join(os.Getenv("HOME"), path)
	case strings.HasPrefix(path, "~"), strings.HasPrefix(path, "%(prefix)"):
		return "", false
	case !filepath.IsAbs(path):
		path = filepath.Join(dir, path)
	}
	return path, section == "include" || strings.HasPrefix(sub, "gitdir")
}

// stamps returns a text that differs when one of the files was changed, made or removed.
func stamps(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil { //nolint:gosec // the user's configuration names it
			fmt.Fprintf(&b, "%s %d %d", path, info.Size(), info.ModTime().UnixNano())
		}
		b.WriteByte(0)
	}
	return b.String()
}

// configHome returns the folder of the user's configuration.
func configHome() string {
	return cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(os.Getenv("HOME"), ".config"))
}

// AddStandby makes a worktree of a commit at path, which must not exist, with a detached HEAD. It
// runs no hooks. It makes only the entry under the repository's lock, which begin takes, and checks
// out the files without it. A failure or a crash leaves what RemoveWorktree removes, and git
// processes that continue, with AGENCY_MAKING=path in their environment.
func (g *Worktrees) AddStandby(ctx context.Context, repo agency.Repo, path, commit string, begin func() (unlock func(), err error)) error {
	unlock, err := begin()
	if err != nil {
		return err
	}
	add := within(repo, "worktree", "add", "--quiet", "--no-checkout", "--detach", "--", path, commit)
	add.env = []string{"AGENCY_MAKING=" + path}
	_, err = g.do(ctx, add)
	unlock()
	if err != nil {
		return fmt.Errorf("make the worktree %s: %w", path, err)
	}
	killpoint.At("standby.added")
	return g.checkOut(ctx, repo, path, "reset", "--quiet", "--hard", "--no-recurse-submodules")
}

// MoveStandby moves a standby from one commit to another. moved is false when the result would
// differ from a new worktree of the commit: when the attributes of files or one of the inputs
// changed between the two commits, or a file in the worktree is in the way.
func (g *Worktrees) MoveStandby(ctx context.Context, repo agency.Repo, path, from, to string, inputs []string) (moved bool, err error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to, "--", ":(glob)**/.gitattributes"}
	for _, input := range inputs {
		args = append(args, ":(literal)"+input)
	}
	switch changed, err := g.run(ctx, repo, args...); {
	case err != nil:
		return false, fmt.Errorf("compare %s with %s: %w", from, to, err)
	case changed != "":
		return false, nil
	}
	err = g.checkOut(ctx, repo, path, "checkout", "--quiet", "--detach", "--no-overwrite-ignore", "--no-recurse-submodules", to, "--")
	if said(err, "would be overwritten") {
		return false, nil
	}
	return err == nil, err
}

// checkOut runs a git that writes the files of a worktree, with the recorded configuration.
func (g *Worktrees) checkOut(ctx context.Context, repo agency.Repo, path string, args ...string) error {
	s, err := g.through(ctx, repo, path)
	if err != nil {
		return err
	}
	_, err = g.do(ctx, call{
		dir: path, site: s, silent: true, settings: checkoutSettings, args: args, env: []string{"AGENCY_MAKING=" + path},
	})
	if err != nil {
		return fmt.Errorf("check out %s: %w", path, err)
	}
	return nil
}

// TakeStandby creates a branch at the commit of the standby at path, and puts the worktree on it.
// The errors are those of AddWorktree. A crash leaves what AddWorktree leaves.
func (g *Worktrees) TakeStandby(ctx context.Context, repo agency.Repo, path, branch string) error {
	entry := entryOf(repo, path)
	head, err := file.ReadRegular(filepath.Join(entry, "HEAD"), 1<<10)
	if err != nil {
		return unmade(path, err)
	}
	commit := strings.TrimSpace(string(head))
	if err := g.makeBranch(ctx, repo, path, branch, commit); err != nil {
		return err
	}
	// As nothing but the branch changes, git need not look at the files, as git checkout would.
	_, err = g.do(ctx, call{
		dir: path, site: site{gitDir: entry, commonDir: repo.CommonDir, worktree: path}, writes: refOf{entry, "HEAD"}, env: []string{"AGENCY_MAKING=" + path},
		args: []string{"symbolic-ref", "-m", "checkout: moving from " + commit + " to " + branch, "HEAD", "refs/heads/" + branch},
	})
	if err != nil {
		return unmade(path, err)
	}
	return nil
}

// StandbyState returns git's data about a standby and its files as a text: two equal texts mean
// that no process wrote there in between. Agents of other runs can, and what one of them leaves
// there must not become the work of the next run. The error is E_NOT_GIT_REPO if it is not a
// worktree of the repository, and E_INVALID_STATE if it is on a branch.
func (g *Worktrees) StandbyState(repo agency.Repo, path string) (string, error) {
	dir, err := gitDir(repo, path)
	if err != nil {
		return "", err
	}
	head, err := file.ReadRegular(filepath.Join(dir, "HEAD"), 1<<10)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(string(head), "ref:") {
		return "", agency.Errorf(agency.CodeInvalidState, "%s is on a branch", path)
	}
	link, err := file.ReadRegular(filepath.Join(path, ".git"), 64<<10)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(link)) != "gitdir: "+dir {
		return "", notWorktree(repo, path)
	}
	info, err := os.Lstat(filepath.Join(dir, "index"))
	if err != nil {
		return "", err
	}
	state := fmt.Sprintf("%s %d %d", strings.TrimSpace(string(head)), info.Size(), info.ModTime().UnixNano())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		state += fmt.Sprintf(" %d", stat.Ino)
	}
	files, err := fileStamps(path)
	return state + " " + files, err
}

// CountFiles returns the number of files in the index of a worktree.
func (g *Worktrees) CountFiles(repo agency.Repo, path string) (int, error) {
	dir, err := gitDir(repo, path)
	if err != nil {
		return 0, err
	}
	f, err := file.OpenRegular(filepath.Join(dir, "index"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var header [12]byte // "DIRC", version, number of entries
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:4]) != "DIRC" {
		return 0, errors.Join(errors.New("the index cannot be read"), err)
	}
	return int(binary.BigEndian.Uint32(header[8:])), nil
}
