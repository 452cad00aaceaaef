package git

import (
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"agency"
	"agency/internal/file"
)

// Import brings what an agent committed in its private repository in dir into the real one: first
// every object whose content has its name, and then the run's own branch, if all of its objects are
// there. It saves other refs of the private repository below keep. When only the real branch moved,
// Import moves the private one. When both moved, it saves the agent's commit below keep too, and
// each repository keeps its own branch. It removes what is neither a file nor a folder in the entry
// of the worktree, which both share: git would write through an agent's link. Import runs no
// program that the agent can name, and follows no link of the agent's. It does nothing if dir has
// no private repository, or an unfinished one.
func (g *Sandboxes) Import(ctx context.Context, repo agency.Repo, worktree, branch, keep, dir string) error {
	root, err := os.OpenRoot(filepath.Join(dir, privateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	failed := func(err error) error {
		return fmt.Errorf("take over the commits of the sandbox in %s: %w", dir, err)
	}
	synced, err := file.ReadBeneath(dir, privateSynced, 128)
	if errors.Is(err, fs.ErrNotExist) { // it is unfinished, so no agent had it
		return nil
	}
	if err != nil {
		return failed(err)
	}
	if err := unlink(ctx, entryOf(repo, worktree)); err != nil {
		return failed(err)
	}
	if err := g.importObjects(ctx, repo, root); err != nil {
		return failed(err)
	}
	ref := "refs/heads/" + branch
	private, err := privateRef(dir, ref)
	if err != nil {
		return failed(err)
	}
	others, err := g.privateRefs(dir, root, ref)
	if err != nil {
		return failed(err)
	}
	for name, id := range others {
		if err := g.saveRef(ctx, repo, keep+strings.TrimPrefix(name, "refs"), id); err != nil {
			return failed(err)
		}
	}
	if err := g.importBranch(ctx, repo, branch, keep, dir, private, strings.TrimSpace(string(synced))); err != nil {
		return failed(err)
	}
	return nil
}

// Unlink removes what an agent that shares the repository can plant for git to write through:
// everything that is neither a file nor a folder in the entry of its worktree, and among the
// reflogs beside that of its branch. Git does not write refs through links, and a link among the
// refs may be the user's.
func (*Sandboxes) Unlink(ctx context.Context, repo agency.Repo, worktree, branch string) error {
	reflogs := filepath.Dir(filepath.Join(repo.CommonDir, "logs", "refs", "heads", branch))
	return errors.Join(unlink(ctx, entryOf(repo, worktree)), unlink(ctx, reflogs))
}

// importBranch brings the branch of a run and its private one in dir together. private is the
// commit of the private one, and last is the last commit that both had.
func (g *Sandboxes) importBranch(ctx context.Context, repo agency.Repo, branch, keep, dir, private, last string) error {
	ref := "refs/heads/" + branch
	if private == "" || private == last && g.looseIs(repo, ref, last) {
		return nil
	}
	ask := func(args ...string) (string, error) { return g.run(ctx, repo, args...) }
	real, err := commitOf(ask, ref)
	if err != nil {
		return err
	}
	switch {
	case real == "":
		return proveMissing(ask, repo.CommonDir, ref) // deleted by the user
	case real == private:
	case private == last:
		if err := file.WriteBeneath(dir, filepath.Join(privateDir, ref), []byte(real+"\n"), 0o600); err != nil {
			return err
		}
		private = real
	case real != last:
		return g.saveRef(ctx, repo, keep+"/heads/"+branch, private)
	default:
		if err := g.complete(ctx, repo, private); damaged(err) {
			return nil // the agent damaged it: the branch stays at the last complete commit
		} else if err != nil {
			return err
		}
		err := g.writeRef(ctx, repo, ref, nil, "update-ref", "--create-reflog", "-m", "agency: from the sandbox", "--end-of-options", ref, private, real)
		if err != nil {
			return err
		}
	}
	return file.WriteBeneath(dir, privateSynced, []byte(private+"\n"), 0o600)
}

// unlink removes everything below a folder that is neither a file nor a folder, such as links and
// named pipes. It returns nil when the folder is gone.
func unlink(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case agency.Unproven(err):
			return err
		case err != nil: // what agency cannot read, the user's git cannot read either
			return fs.SkipDir
		case entry.IsDir() || entry.Type().IsRegular():
			return nil
		}
		if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// complete fails unless the repository itself has a commit with all objects that its refs do not
// have. The heads of worktrees do not count: agents can write them, and git fails if one of them
// names a missing commit.
func (g *Sandboxes) complete(ctx context.Context, repo agency.Repo, commit string) error {
	_, err := g.run(ctx, repo, "rev-list", "--objects", "--quiet", "--single-worktree", commit, "--not", "--all")
	return err
}

// looseIs reports whether a ref is a file of the repository that holds a commit.
func (g *Sandboxes) looseIs(repo agency.Repo, ref, id string) bool {
	data, err := file.ReadBeneath(repo.CommonDir, ref, 128)
	return err == nil && strings.TrimSpace(string(data)) == id
}

// saveRef keeps a commit of a private repository under a ref, unless it is kept already. It skips
// what the agent made and git cannot use. Other failures of git prove nothing, and are errors.
func (g *Sandboxes) saveRef(ctx context.Context, repo agency.Repo, ref, id string) error {
	if g.looseIs(repo, ref, id) {
		return nil
	}
	if _, err := g.run(ctx, repo, "check-ref-format", ref); exited(err, 1) {
		return nil // the agent made a file that cannot be a ref
	} else if err != nil {
		return err
	}
	if err := g.complete(ctx, repo, id); damaged(err) {
		return nil // the agent does not have what the ref names
	} else if err != nil {
		return err
	}
	return g.writeRef(ctx, repo, ref, nil, "update-ref", "--no-deref", "--end-of-options", ref, id)
}

// otherCauses are git's words for failures that objects of an agent cannot cause: the machine lacks
// something, or git cannot read what only the user's repository has.
var otherCauses = append([]string{
	"Out of memory", "Cannot allocate memory", "Too many open files", "quota exceeded", "Input/output error", "Permission denied",
	"Read-only file system", "Resource temporarily unavailable", "failed to write", "(stored in ", "bad object refs/", "bad object HEAD",
}, unwritten...)

// allocation matches git's message about memory that it does not get.
var allocation = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(tried to allocate (\d+) bytes\)`) })

// damaged reports whether git failed because of objects that an agent damaged, or did not make. An
// object that needs more memory than the largest imported one has bytes is damaged.
func damaged(err error) bool {
	f, ok := errors.AsType[*failure](err)
	if !ok || !exited(err, 1) && !exited(err, 128) {
		return false
	}
	if size := allocation().FindStringSubmatch(f.stderr); size != nil {
		n, err := strconv.ParseUint(size[1], 10, 64)
		return err == nil && n > objectLimit+1 // git adds a byte
	}
	return !slices.ContainsFunc(otherCauses, func(words string) bool { return strings.Contains(f.stderr, words) })
}

// privateRef returns the commit of a ref in the private repository in dir; empty is none.
func privateRef(dir, ref string) (string, error) {
	data, err := file.ReadBeneath(dir, filepath.Join(privateDir, ref), 128)
	if id := strings.TrimSpace(string(data)); err == nil && sha().MatchString(id) {
		return id, nil
	}
	if err != nil && agency.Unproven(err) {
		return "", err
	}
	data, err = file.ReadBeneath(dir, filepath.Join(privateDir, "packed-refs"), 256<<20)
	if err != nil && agency.Unproven(err) {
		return "", err
	}
	return packedRef(data, ref), nil
}

// mostPrivateRefs is how many refs of a private repository are saved, besides the run's own branch.
const mostPrivateRefs = 1000

// privateRefs returns the other refs that an agent made: its branches, and its stash.
func (g *Sandboxes) privateRefs(dir string, root *os.Root, own string) (map[string]string, error) {
	found := map[string]string{}
	add := func(name string) {
		if name == own || len(found) >= mostPrivateRefs {
			return
		}
		data, err := file.ReadBeneath(dir, filepath.Join(privateDir, name), 128)
		if id := strings.TrimSpace(string(data)); err == nil && sha().MatchString(id) {
			found[name] = id
		}
	}
	add("refs/stash")
	err := fs.WalkDir(root.FS(), "refs/heads", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case agency.Unproven(err):
			return err
		case err != nil || strings.Count(path, "/") > 16:
			return fs.SkipDir
		case entry.Type().IsRegular():
			add(path)
		}
		return nil
	})
	return found, err
}

// importObjects copies the objects of a private repository that the real one does not have.
func (g *Sandboxes) importObjects(ctx context.Context, repo agency.Repo, root *os.Root) error {
	for i := range 256 {
		prefix := hex.EncodeToString([]byte{byte(i)})
		entries, err := fs.ReadDir(root.FS(), "objects/"+prefix)
		if agency.Unproven(err) {
			return err
		}
		for _, entry := range entries { // empty on any other error
			if name := prefix + entry.Name(); sha().MatchString(name) {
				if err := importObject(repo, root, name); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	packs, err := fs.ReadDir(root.FS(), "objects/pack")
	if agency.Unproven(err) {
		return err
	}
	for _, entry := range packs {
		if name := entry.Name(); strings.HasSuffix(name, ".pack") && strings.HasPrefix(name, "pack-") {
			if err := g.importPack(ctx, repo, root, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// objectLimit is the size of the largest imported object, in bytes.
const objectLimit = 4 << 30

// importObject copies one object if its content has its name; it skips any other.
func importObject(repo agency.Repo, root *os.Root, name string) error {
	rel := filepath.Join("objects", name[:2], name[2:])
	to := filepath.Join(repo.CommonDir, rel)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	from, err := openPlain(root, rel)
	if err != nil {
		if agency.Unproven(err) {
			return err
		}
		return nil // what the agent made is not an object of this name
	}
	defer func() { _ = from.Close() }()
	if err := os.Mkdir(filepath.Dir(to), 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as git makes it
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(to), "tmp_obj_")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	right, err := copyObject(temp, from, name)
	if err == nil && right {
		err = errors.Join(temp.Chmod(0o444), temp.Sync())
	}
	if err := errors.Join(err, temp.Close()); err != nil || !right {
		return err
	}
	return os.Rename(temp.Name(), to)
}

// openPlain opens a regular file of a private repository.
func openPlain(root *os.Root, rel string) (*os.File, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = file.ErrNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// copyObject copies a loose object, and reports whether its content has the name.
func copyObject(to io.Writer, from io.Reader, name string) (right bool, err error) {
	sum := sha1.New() //nolint:gosec // as above
	if len(name) == 2*sha256.Size {
		sum = sha256.New()
	}
	written := &failing{to: to}
	raw := io.TeeReader(io.LimitReader(from, objectLimit), written)
	content, err := zlib.NewReader(raw)
	if err == nil {
		_, err = io.Copy(sum, io.LimitReader(content, objectLimit))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, raw) // nothing may follow; if it does, it is copied too, and no program reads it
	}
	if written.err != nil {
		return false, written.err
	}
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == name, nil
}

// failing remembers why a write failed, so that importObject does not take it for damage of what it
// reads.
type failing struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (f *failing) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.err = errors.Join(f.err, err)
	return n, err
}

// importPack adds the objects of a pack to the repository. The repository's git checks them, and
// names them by their content.
func (g *Sandboxes) importPack(ctx context.Context, repo agency.Repo, root *os.Root, name string) error {
	from, err := openPlain(root, filepath.Join("objects", "pack", name))
	if err != nil {
		if agency.Unproven(err) {
			return err
		}
		return nil
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	seen := fmt.Sprintf("%s %s %d %s", root.Name(), name, info.Size(), info.ModTime())
	if _, done := g.packs.Load(seen); done {
		return nil
	}
	if err := g.unpack(ctx, repo, from); damaged(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", from.Name(), err)
	}
	g.packs.Store(seen, true)
	return nil
}

// unpack adds the objects of a pack to the repository.
func (g *Sandboxes) unpack(ctx context.Context, repo agency.Repo, from io.Reader) error {
	temp, err := g.tempDir("pack-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	path := filepath.Join(temp, "in.pack")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, objectLimit))
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	c := within(repo, "unpack-objects", "-q")
	c.settings = []string{"core.fsync=all", "core.fsyncMethod=batch"}
	c.file = path
	_, err = g.do(ctx, c)
	return err
}
