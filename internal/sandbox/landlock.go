package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/file"
)

// devices are the devices that programs need.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}

// byLandlock is Command for the level landlock: the agent is in the machine's file system, in a fence.
func byLandlock(c *agency.Confinement) (argv []string, env agency.Environ, err error) {
	f, env, err := fenced(c)
	if err != nil {
		return nil, nil, err
	}
	return slices.Concat([]string{c.Program, Inside}, f.args(), c.Argv), env, nil
}

// fenced returns the fence of an agent in the machine's file system, and its environment. It makes
// the agent's home and folder for temporary files.
func fenced(c *agency.Confinement) (*fence, agency.Environ, error) {
	home, err := newHome(c)
	if err != nil {
		return nil, nil, err
	}
	f, err := systemFence(c.Program, c.Sandbox.Network)
	if err != nil {
		return nil, nil, err
	}
	tmp := filepath.Join(c.Own, "tmp") // where it counts for the limit of the disk
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o700)); err != nil {
		return nil, nil, err
	}
	for _, m := range append(programs(c, home.user), home.mounts...) {
		f.add(m)
	}
	f.Read = slices.Concat(f.Read, c.Reads, c.Git.Objects, []string{c.Git.CommonDir})
	f.Write = slices.Concat(f.Write, c.Writes, c.Git.Shared, []string{home.path, tmp, c.Run.Worktree})
	return f, append(home.moved(environment(c), c.Set), "TMPDIR="+tmp), nil
}

func (f *fence) add(m mount) {
	switch m.how {
	case "--ro-bind":
		f.Read = append(f.Read, m.from)
	case "--bind":
		f.Write = append(f.Write, m.from)
	}
}

// systemFence returns a fence, for a sandbox that nothing else confines, with the system's folders and a
// program in it.
func systemFence(program string, network agency.Network) (*fence, error) {
	f := &fence{Read: []string{program, "/proc"}, Write: slices.Clone(devices), Alone: true, Network: network}
	for _, m := range system() {
		if m.path != etc {
			f.add(m)
		}
	}
	covered, err := hidden()
	if err != nil {
		return nil, err
	}
	secret := map[string]bool{}
	for _, m := range covered {
		// To most users the kernel refuses these anyway. So only root gets a rule for each file, which does not
		// cover a file that replaces it later.
		if err := unix.Access(m.path, unix.R_OK); !errors.Is(err, fs.ErrPermission) {
			secret[m.path] = true
		}
	}
	return f, f.without(etc, secret)
}

// without lets the agent read all that is in a folder, except the secrets.
func (f *fence) without(dir string, secret map[string]bool) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(secret)), func(path string) bool { return above(dir, path) }) {
		f.Read = append(f.Read, dir)
		return nil
	}
	f.Names = append(f.Names, dir)
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		p := filepath.Join(dir, entry.Name())
		switch {
		case secret[p]:
		case entry.IsDir():
			if err := f.without(p, secret); err != nil {
				return err
			}
		case entry.Type().IsRegular(): // a link may lead to anywhere
			f.Read = append(f.Read, p)
		}
	}
	return err
}

// home is the home of an agent at the level landlock: a folder of the run, which its attempts share, with
// links to the parts of the user's home that it may have. What the agent's program keeps elsewhere is in it
// too, below the folder outside.
type home struct {
	user, path string
	state      []string // where the agent's program looks for its state, as the user's variables have it
	mounts     []mount  // what the agent reads and writes through the links
}

// outside is the folder in a home for paths outside the user's home.
const outside = ".outside"

func newHome(c *agency.Confinement) (*home, error) {
	h := &home{
		user: path.Clean(c.Env.Lookup("HOME")), path: filepath.Join(c.Own, "home"),
		state: slices.Concat(c.State.Own, c.State.Copy, c.State.Read, c.State.Write),
	}
	if err := os.MkdirAll(h.path, 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(h.path); err != nil || !info.IsDir() { // a link would let the agent have what it leads to
		return nil, errors.Join(err, fmt.Errorf("make the agent's home: %s is not a folder", h.path))
	}
	config, err := os.ReadFile(c.Git.User)
	if err == nil {
		err = file.WriteBeneath(h.path, ".gitconfig", config, 0o600)
	}
	for _, p := range c.State.Own {
		err = errors.Join(err, file.EnsureDirBeneath(h.path, h.place(p)))
	}
	for _, p := range c.State.Copy {
		if data, missing := os.ReadFile(p); missing == nil { // without the file the agent starts afresh
			err = errors.Join(err, h.clear(h.place(p)), file.WriteBeneath(h.path, h.place(p), data, 0o600))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make the agent's home: %w", err)
	}
	mounts, err := configured(c, h.user)
	if err != nil {
		return nil, err
	}
	for _, p := range c.State.Write {
		if err := os.MkdirAll(p, 0o700); err == nil {
			mounts = append(mounts, mount{"--bind", p, p})
		}
	}
	for _, p := range c.State.Read {
		if _, err := os.Stat(p); err == nil {
			mounts = append(mounts, mount{"--ro-bind", p, p})
		}
	}
	slices.SortStableFunc(mounts, func(a, b mount) int { return depth(a.path) - depth(b.path) })
	for _, m := range mounts {
		if err := h.link(m); err != nil {
			return nil, fmt.Errorf("make the agent's home: %w", err)
		}
	}
	return h, nil
}

// place returns where a path of the user is in the home.
func (h *home) place(p string) string {
	if filepath.Clean(p) == h.user {
		return "."
	}
	if rel, below := strings.CutPrefix(filepath.Clean(p), strings.TrimSuffix(h.user, "/")+"/"); below {
		return rel
	}
	return filepath.Join(outside, p)
}

// clear makes the folders above a place. It removes what the agent put in their place.
func (h *home) clear(place string) error {
	if dir := filepath.Dir(place); dir != "." {
		return file.EnsureDirBeneath(h.path, dir)
	}
	return nil
}

// link lets the agent have a path of the user, through a link.
func (h *home) link(m mount) error {
	linked := slices.ContainsFunc(h.mounts, func(other mount) bool { return above(other.path, m.path) })
	h.mounts = append(h.mounts, m)
	place := h.place(m.path)
	if linked { // through the link to a folder above it
		return nil
	}
	if err := h.clear(place); err != nil {
		return err
	}
	if info, err := file.StatBeneath(h.path, place); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		// The agent put a file of its own there, as programs do that replace files.
		root, err := os.OpenRoot(h.path)
		if err == nil {
			err = errors.Join(root.RemoveAll(place), root.Close())
		}
		if err != nil {
			return err
		}
	}
	return file.ReplaceLinkBeneath(h.path, place, m.from)
}

// moved returns an environment in which HOME, and variables that name paths in the user's home or of the
// agent's state, name those in this home. PATH stays as it is, and so do variables set for the attempt.
func (h *home) moved(env agency.Environ, set []string) agency.Environ {
	moved := env.Without("HOME")
	for i, kv := range moved {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" || strings.HasPrefix(name, "AGENCY_") || !filepath.IsAbs(value) || value != h.user && above(value, h.user) {
			continue
		}
		inHome := above(h.user, value) && !slices.Contains(set, name)
		if inHome || slices.ContainsFunc(h.state, func(p string) bool { return above(filepath.Clean(value), p) }) {
			moved[i] = name + "=" + filepath.Join(h.path, h.place(value))
		}
	}
	return append(moved, "HOME="+h.path)
}
