package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ReadBeneath is ReadRegular for the file rel in the folder root, where everything beneath root is
// untrusted: no component of rel may be a link (ErrNotRegular), so nothing outside root is ever
// read.
func ReadBeneath(root, rel string, limit int64) ([]byte, error) {
	path := filepath.Join(root, rel)
	dir, name, err := openParent(root, rel, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !before.Mode().IsRegular() {
		return nil, refuse(path, ErrNotRegular)
	}
	f, err := dir.OpenFile(name, readFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	return read(f, path, before, limit)
}

// WriteBeneath is WriteAtomic for the file rel in the folder root, where everything beneath root is
// untrusted. It refuses a folder of rel that is a link (ErrNotRegular) and replaces a link at rel
// itself, so nothing outside root is ever written. The mode becomes exactly perm, whatever the
// umask. Missing folders are made with mode 0755.
func WriteBeneath(root, rel string, data []byte, perm fs.FileMode) error {
	dir, name, err := openParent(root, rel, true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := put(dir, name, data, perm, false, dir.Rename); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(root, rel), err)
	}
	return nil
}

// CreateBeneath is WriteBeneath for a file that must not exist yet, else fs.ErrExist. Of several
// processes that try at once exactly one succeeds, no reader sees half a file, and when it returns
// the file is on the disk.
func CreateBeneath(root, rel string, data []byte, perm fs.FileMode) error {
	dir, name, err := openParent(root, rel, true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if _, err := dir.Lstat(name); err == nil { // this avoids writing all of the data first
		return fmt.Errorf("create %s: %w", filepath.Join(root, rel), fs.ErrExist)
	}
	if err := put(dir, name, data, perm, true, dir.Link); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Join(root, rel), err)
	}
	return nil
}

// AppendBeneath opens the file rel in the folder root for reading and appending, and creates it
// with perm if missing, where everything beneath root is untrusted: a link, a pipe or any other
// irregular file is ErrNotRegular. It never blocks on a pipe. The caller closes it.
func AppendBeneath(root, rel string, perm fs.FileMode) (*os.File, error) {
	const flags = os.O_RDWR | os.O_APPEND | syscall.O_NONBLOCK
	dir, name, err := openParent(root, rel, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.OpenFile(name, flags|os.O_CREATE|os.O_EXCL, perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	path := filepath.Join(root, rel)
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", path, err)
	}
	if !before.Mode().IsRegular() {
		return nil, refuse(path, ErrNotRegular)
	}
	if f, err = dir.OpenFile(name, flags, 0); err != nil {
		return nil, fmt.Errorf("append to %s: %w", path, err)
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = refuse(path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// RenameBeneath renames the file or folder rel in the folder root within its folder, where
// everything beneath root is untrusted. A file that has that name already is replaced.
func RenameBeneath(root, rel, name string) error {
	dir, old, err := openParent(root, rel, false)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Rename(old, name); err != nil {
		return fmt.Errorf("rename %s: %w", filepath.Join(root, rel), err)
	}
	return nil
}

// EnsureDirBeneath makes the folder rel in the folder root, with the folders above it, where
// everything beneath root is untrusted. It removes anything else in their place, such as a link.
func EnsureDirBeneath(root, rel string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	at, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	if !filepath.IsLocal(rel) {
		return fmt.Errorf("make %q beneath %s: %w", rel, root, fs.ErrInvalid)
	}
	path := ""
	for part := range strings.SplitSeq(filepath.Clean(rel), string(filepath.Separator)) {
		path = filepath.Join(path, part)
		if info, err := at.Lstat(path); err == nil && !info.IsDir() {
			if err := at.Remove(path); err != nil {
				return err
			}
		}
		if err := at.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// openParent opens the folder that holds rel, going down from root one component at a time and
// never through a link.
func openParent(root, rel string, create bool) (dir *os.Root, name string, err error) {
	rel = filepath.Clean(rel)
	if !filepath.IsLocal(rel) || rel == "." {
		return nil, "", fmt.Errorf("open %q beneath %s: %w", rel, root, fs.ErrInvalid)
	}
	if dir, err = os.OpenRoot(root); err != nil {
		return nil, "", err
	}
	parts := strings.Split(rel, string(filepath.Separator))
	path := root
	for _, part := range parts[:len(parts)-1] {
		path = filepath.Join(path, part)
		next, err := descend(dir, part, create)
		_ = dir.Close()
		if err != nil {
			return nil, "", fmt.Errorf("open %s: %w", path, err)
		}
		dir = next
	}
	return dir, parts[len(parts)-1], nil
}

var errLink = fmt.Errorf("%w: a link instead of a folder", ErrNotRegular)

// descend opens one folder of dir. os.Root would follow a link that stays inside it, hence the
// check before, and the comparison after, in case it was replaced in between.
func descend(dir *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, errLink
	}
	// With "/." the name is opened as a folder and so never blocks on a pipe.
	next, err := dir.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errLink
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}
