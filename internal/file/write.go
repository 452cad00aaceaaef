// Package file replaces files so that no reader ever sees half of one, and reads untrusted files
// safely despite links, pipes, devices or sheer size.
package file

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteAtomic replaces the file at path: readers see all of the old content or all of the new. The
// mode becomes 0600. A link at path is replaced, not followed. After a power failure the file may
// be the old one or empty; use WriteDurable for content that cannot be made again. A crash can
// leave a file named ".tmp-*" beside it.
func WriteAtomic(path string, data []byte) error {
	return write(path, data, 0o600, false)
}

// WriteDurable is WriteAtomic; when it returns, the file and its name are also on the disk.
func WriteDurable(path string, data []byte) error {
	return write(path, data, 0o600, true)
}

// Flush makes a file that was written, and its name, durable.
func Flush(path string) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("flush %s: %w", path, err)
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.Open(filepath.Base(path))
	if err != nil {
		return fmt.Errorf("flush %s: %w", path, err)
	}
	err = f.Sync()
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = sync(dir)
	}
	if err != nil {
		return fmt.Errorf("flush %s: %w", path, err)
	}
	return nil
}

// Edit is WriteDurable for a file of the user: an existing file keeps its mode.
func Edit(path string, data []byte) error {
	perm := fs.FileMode(0o600)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		perm = info.Mode().Perm()
	}
	return write(path, data, perm, true)
}

func write(path string, data []byte, perm fs.FileMode, durable bool) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = dir.Close() }()
	if err := put(dir, filepath.Base(path), data, perm, durable, dir.Rename); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// put writes a temporary file in dir and gives it its name by place, which is a rename or a link.
func put(dir *os.Root, name string, data []byte, perm fs.FileMode, durable bool, place func(temp, name string) error) error {
	temp := ".tmp-" + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// After a rename this finds nothing; after a link or a failure it removes the temporary name.
	defer func() { _ = dir.Remove(temp) }()
	if err := fill(f, data, perm, durable); err != nil {
		return err
	}
	if err := place(temp, name); err != nil {
		return err
	}
	if durable {
		return sync(dir)
	}
	return nil
}

// fill writes data to f and closes it.
func fill(f *os.File, data []byte, perm fs.FileMode, durable bool) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(path string) error {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return sync(dir)
}

// sync makes the names in a directory durable.
func sync(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
