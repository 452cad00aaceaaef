package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CopyBeneath copies the file or folder rel of the folder from to the same place in the folder to.
// Neither is trusted: no link is followed on either side, and nothing outside is read or written.
// Files keep their permissions and are new: an existing file is fs.ErrExist. skipped names entries
// that are neither a regular file nor a folder, such as links. Once limit bytes are copied the
// error is ErrTooLarge. The copy appears whole or not at all; a crash can leave a part under
// another name, which the next copy removes.
func CopyBeneath(ctx context.Context, from, to, rel string, limit int64) (skipped []string, err error) {
	source, name, err := openParent(from, rel, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", filepath.Join(from, rel), err)
	}
	target, _, err := openParent(to, rel, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = target.Close() }()
	if _, err := target.Lstat(name); err == nil {
		return nil, &fs.PathError{Op: "copy", Path: filepath.Join(to, rel), Err: fs.ErrExist}
	}
	c := copying{ctx: ctx, left: limit}
	temp := name + ".tmp-copy"
	err = target.RemoveAll(temp)
	if err == nil {
		err = c.entry(source, target, name, temp, rel, info)
	}
	if err == nil && len(c.skipped) > 0 && c.skipped[0] == rel {
		return c.skipped, nil // rel itself cannot be copied
	}
	if err == nil {
		err = target.Rename(temp, name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy %s: %w", filepath.Join(from, rel), err), target.RemoveAll(temp))
	}
	return c.skipped, nil
}

// copying is one copy in progress.
type copying struct {
	ctx     context.Context //nolint:containedctx // it lives as long as the one call
	left    int64           // bytes
	skipped []string
}

// entry copies one entry; as is the name of the copy.
func (c *copying) entry(from, to *os.Root, name, as, rel string, info fs.FileInfo) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return c.file(from, to, name, as, info)
	case info.IsDir():
		return c.folder(from, to, name, as, rel, info)
	default:
		c.skipped = append(c.skipped, rel)
		return nil
	}
}

func (c *copying) folder(from, to *os.Root, name, as, rel string, info fs.FileInfo) error {
	source, err := descend(from, name, false)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := descend(to, as, true)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	dir, err := source.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		below, err := source.Lstat(entry.Name())
		if err != nil {
			return err
		}
		if err := c.entry(source, target, entry.Name(), entry.Name(), filepath.Join(rel, entry.Name()), below); err != nil {
			return err
		}
	}
	return target.Chmod(".", info.Mode().Perm())
}

func (c *copying) file(from, to *os.Root, name, as string, before fs.FileInfo) error {
	source, err := from.OpenFile(name, readFlags|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if info, err := source.Stat(); err != nil || !os.SameFile(before, info) {
		return errors.Join(err, refuse(name, ErrNotRegular))
	}
	if before.Size() > c.left {
		return refuse(name, ErrTooLarge)
	}
	target, err := to.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(target, io.LimitReader(source, c.left+1))
	if c.left -= n; err == nil && c.left < 0 {
		err = refuse(name, ErrTooLarge)
	}
	if err == nil {
		err = target.Chmod(before.Mode().Perm())
	}
	return errors.Join(err, target.Close())
}

// LinkBeneath creates a link at rel in the folder root that points to target. It creates missing
// folders on the way and follows no link; an existing entry is fs.ErrExist.
func LinkBeneath(root, rel, target string) error {
	dir, name, err := openParent(root, rel, true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Symlink(target, name)
}

// ReplaceLinkBeneath is LinkBeneath, but atomically replaces the entry at rel. It does not replace
// a folder.
func ReplaceLinkBeneath(root, rel, target string) error {
	dir, name, err := openParent(root, rel, true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	temp := name + ".tmp-link" // always the same name, so that a crash leaves at most one, which the next link removes
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Symlink(target, temp); err != nil {
		return err
	}
	if err := dir.Rename(temp, name); err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}

// StatBeneath returns what is at rel in the folder root; no folder on the way may be a link
// (ErrNotRegular), and one at rel itself is not followed.
func StatBeneath(root, rel string) (fs.FileInfo, error) {
	dir, name, err := openParent(root, rel, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.Lstat(name)
}
