package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
)

// The parts of the folder of a private repository. The agent can reach only the first one.
const (
	privateDir    = "git"
	privateUser   = "gitconfig" // the user's own settings that commits need
	privateSynced = "synced"    // the commit of the branch that both repositories had last
)

// Private returns the git directory of an agent in a sandbox, in the folder dir: a repository whose
// refs and new objects are its own, and which borrows all other objects. The agent may do anything
// in it, and only Import brings its content into the real repository. Both share nothing but the
// worktree's own entry. The returned function makes or renews that repository; the worktree must
// exist when it is called, and need not before. E_SANDBOX_UNAVAILABLE: the refs of the repository
// are in a form that cannot be copied.
func (g *Sandboxes) Private(ctx context.Context, repo agency.Repo, worktree, branch, dir string) (agency.PrivateGit, func() error, error) {
	p := agency.PrivateGit{
		Dir: filepath.Join(dir, privateDir), CommonDir: repo.CommonDir,
		Entry: entryOf(repo, worktree), User: filepath.Join(dir, privateUser),
		Protected: entryFiles,
	}
	l, err := g.lend(ctx, repo)
	if err != nil {
		return p, nil, err
	}
	p.Objects = l.objects
	if info, err := os.Stat(filepath.Join(repo.CommonDir, "hooks")); err == nil && info.IsDir() {
		p.Hooks = filepath.Join(repo.CommonDir, "hooks")
	}
	return p, func() error {
		if err := makePrivate(&p, &l, branch, dir); err != nil {
			return fmt.Errorf("make a repository for the sandbox of %s: %w", worktree, err)
		}
		return nil
	}, nil
}

// entryFiles are the files of a worktree's entry that an agent must not change.
var entryFiles = []string{"commondir", "gitdir", "config.worktree"}

// lent is the part of a repository that every sandbox gets.
type lent struct {
	settings []setting // the repository's
	user     string    // the settings of the user, as a configuration file
	objects  []string  // folders
}

func (g *Sandboxes) lend(ctx context.Context, repo agency.Repo) (l lent, err error) {
	if l.settings, err = g.settings(ctx, repo.CommonDir); err == nil {
		err = checkRefStorage(repo, l.settings)
	}
	if err == nil {
		l.objects, err = borrowed(repo.CommonDir)
	}
	if err == nil {
		l.user, err = g.userSettings(ctx, repo)
	}
	return l, err
}

// makePrivate writes a private repository into dir.
func makePrivate(p *agency.PrivateGit, l *lent, branch, dir string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "worktrees/" + filepath.Base(p.Entry)} {
		if err := file.EnsureDirBeneath(dir, filepath.Join(privateDir, sub)); err != nil {
			return err
		}
	}
	tip, packed, err := copyRefs(p.CommonDir, branch)
	if err != nil {
		return err
	}
	files, err := copiedFiles(p.CommonDir)
	if err != nil {
		return err
	}
	for i := range p.Objects {
		files["git/objects/info/alternates"] += p.Borrowed(i) + "\n"
	}
	files["git/config"] = format(harmless(l.settings))
	files["git/packed-refs"] = packed
	files["git/refs/heads/"+branch] = tip + "\n"
	files[privateUser] = l.user
	for name, text := range files {
		if err := file.WriteBeneath(dir, name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	// This file is the last one: without it there is nothing to import.
	if err := file.WriteBeneath(dir, privateSynced, []byte(tip+"\n"), 0o600); err != nil {
		return err
	}
	// An empty file keeps the agent from making one, which the user's git would use.
	own, err := os.OpenFile(filepath.Join(p.Entry, "config.worktree"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	return own.Close()
}

// Shared returns what an agent has of the repository at the level landlock: it can read all of it,
// and write the objects, the entry of its worktree and the folders of its own branch. Shared writes
// the user's own settings into dir.
func (g *Sandboxes) Shared(ctx context.Context, repo agency.Repo, worktree, branch, dir string) (agency.PrivateGit, error) {
	p := agency.PrivateGit{CommonDir: repo.CommonDir, Entry: entryOf(repo, worktree), User: filepath.Join(dir, privateUser), Protected: entryFiles}
	l, err := g.lend(ctx, repo)
	if err != nil {
		return p, err
	}
	p.Objects = l.objects
	failed := func(err error) (agency.PrivateGit, error) {
		return p, fmt.Errorf("share the repository with the sandbox of %s: %w", worktree, err)
	}
	if err := file.EnsureDirBeneath(filepath.Dir(dir), filepath.Base(dir)); err != nil {
		return failed(err)
	}
	if err := file.WriteBeneath(dir, privateUser, []byte(l.user), 0o600); err != nil {
		return failed(err)
	}
	heads := filepath.Dir(filepath.Join("refs", "heads", branch))
	root, err := os.OpenRoot(repo.CommonDir)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = root.Close() }()
	for _, sub := range []string{heads, filepath.Join("logs", heads)} { // git removes those that are empty
		if err := root.MkdirAll(sub, 0o777); err != nil {
			return failed(err)
		}
		p.Shared = append(p.Shared, filepath.Join(repo.CommonDir, sub))
	}
	p.Shared = append(p.Shared, filepath.Join(repo.CommonDir, "objects"), p.Entry)
	return p, nil
}

// checkRefStorage refuses a repository whose refs are not files: a sandbox cannot use it.
func checkRefStorage(repo agency.Repo, list []setting) error {
	for _, s := range list {
		if s.key == "extensions.refstorage" && s.value != "files" {
			return agency.Errorf(agency.CodeSandboxUnavailable, "the repository %s keeps its refs as %q, and a sandbox needs files", repo.Root, s.value).
				WithHint("--sandbox worktree")
		}
	}
	return nil
}

// copiedFiles returns the files that a private repository has unchanged from the real one.
func copiedFiles(commonDir string) (map[string]string, error) {
	files := map[string]string{"git/HEAD": "ref: refs/heads/main\n"} // of the main worktree, which the agent does not have
	if data, err := file.ReadBeneath(commonDir, "HEAD", 4096); err == nil {
		files["git/HEAD"] = string(data)
	}
	for _, name := range []string{"info/exclude", "info/attributes", "shallow"} {
		data, err := file.ReadBeneath(commonDir, name, 16<<20)
		if err == nil {
			files["git/"+name] = string(data)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

// borrowed returns the folders of objects of a repository, and those that it borrows itself.
func borrowed(commonDir string) ([]string, error) {
	all := []string{filepath.Join(commonDir, "objects")}
	for i := 0; i < len(all) && len(all) < 32; i++ {
		data, err := file.ReadRegular(filepath.Join(all[i], "info", "alternates"), 1<<16)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			path := strings.TrimSuffix(line, "\n")
			if !filepath.IsAbs(path) {
				path = filepath.Join(all[i], path)
			}
			if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(line, "#") && !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all, nil
}

// harmless returns the settings of a repository for the agent: without those that hold a secret or
// lead to one, and without garbage collection, which would pack objects that only the private
// repository has.
func harmless(list []setting) []setting {
	list = slices.DeleteFunc(slices.Clone(list), func(s setting) bool {
		section, _, name := s.parts()
		return slices.Contains([]string{"http", "credential", "url", "include", "includeif", "gpg", "gc", "maintenance", "sendemail"}, section) ||
			name == "gpgsign" || section == "core" && slices.Contains([]string{"fsmonitor", "sshcommand", "askpass", "gitproxy", "worktree"}, name)
	})
	for i, s := range list {
		if section, _, name := s.parts(); section == "remote" && (name == "url" || name == "pushurl") {
			if u, err := url.Parse(s.value); err == nil && u.User != nil {
				u.User = nil
				list[i].value = u.String()
			}
		}
	}
	return append(list, setting{key: "gc.auto", value: "0"}, setting{key: "maintenance.auto", value: "false"})
}

// userSettings returns the user's own settings that commits and looks need, as a configuration file.
func (g *Sandboxes) userSettings(ctx context.Context, repo agency.Repo) (string, error) {
	all, err := g.effective(ctx, repo.CommonDir)
	if err != nil {
		return "", err
	}
	return format(slices.DeleteFunc(slices.Clone(all), func(s setting) bool {
		section, _, name := s.parts()
		switch section {
		case "user":
			return name != "name" && name != "email"
		case "core": // how lines end
			return name != "autocrlf" && name != "eol" && name != "safecrlf"
		case "init", "pull", "rebase", "diff", "color":
			return s.bare || strings.HasPrefix(name, "external") || name == "command" || name == "textconv"
		default:
			return true
		}
	})), nil
}

// copyRefs returns the commit of a branch, and all refs of a repository but that and agency's own
// as the content of a packed-refs file.
func copyRefs(commonDir, branch string) (tip, packed string, err error) {
	refs := map[string]string{}
	data, err := file.ReadBeneath(commonDir, "packed-refs", 256<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for line := range strings.Lines(string(data)) {
		if id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && sha().MatchString(id) {
			refs[name] = id
		}
	}
	err = filepath.WalkDir(filepath.Join(commonDir, "refs"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it was packed just now
			return nil
		}
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".lock") {
			return err
		}
		name, err := filepath.Rel(commonDir, path)
		if err != nil {
			return err
		}
		data, err := file.ReadRegular(path, 4096)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if id := strings.TrimSpace(string(data)); sha().MatchString(id) {
			refs[filepath.ToSlash(name)] = id
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	if tip = refs["refs/heads/"+branch]; tip == "" {
		return "", "", fmt.Errorf("the branch %s has no commit", branch)
	}
	names := make([]string, 0, len(refs))
	for name := range refs {
		if name != "refs/heads/"+branch && !strings.HasPrefix(name, "refs/agency/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted\n")
	for _, name := range names {
		b.WriteString(refs[name] + " " + name + "\n")
	}
	return tip, b.String(), nil
}

// packedRef returns the commit of a ref in the content of a packed-refs file; empty is none.
func packedRef(data []byte, ref string) string {
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref && sha().MatchString(id) {
			return id
		}
	}
	return ""
}
