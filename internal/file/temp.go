package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Temp is a folder that its process keeps locked until Remove or the end of the process.
type Temp struct {
	Path string

	lock *os.File // the folder itself; no child inherits it
}

// MakeTemp makes a folder in parent, which it makes if missing. ClearTemp leaves the folder alone
// while this process lives.
func MakeTemp(parent, prefix string) (*Temp, error) {
	for {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockFolder(dir)
		if err == nil {
			return &Temp{dir, lock}, nil
		}
		_ = os.Remove(dir)
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) { // ClearTemp found it first
			return nil, err
		}
	}
}

// Remove removes the folder.
func (t *Temp) Remove() error { return errors.Join(os.RemoveAll(t.Path), t.lock.Close()) }

// ClearTemp removes everything in a folder, except what live processes made with MakeTemp.
func ClearTemp(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if !e.IsDir() {
			_ = os.Remove(path)
			continue
		}
		if lock, err := lockFolder(path); !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = os.RemoveAll(path)
			if err == nil {
				_ = lock.Close()
			}
		}
	}
}

// lockFolder opens and locks a folder. The error wraps os.ErrNotExist when the folder was removed
// meanwhile, and EWOULDBLOCK while another process holds it.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		_, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
