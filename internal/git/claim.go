package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// claim is the record, in a file of the folder Claims, that a git process of agency writes one ref.
// The file exists from before the process starts until it has ended by itself. The process and its
// children hold a kernel lock on the file. So a claim that exists and is not locked belongs to a
// git process that was killed, and the ref may still have the lock file of that process.
type claim struct {
	*os.File
	writes refOf
}

// refOf is a ref of a repository.
type refOf struct {
	CommonDir string `json:"common_dir"`
	Ref       string `json:"ref"`
}

// claim records that a git process is about to write a ref. It waits for another process that still
// writes the ref, and removes the lock that a killed process left.
func (g *program) claim(ctx context.Context, writes refOf) (*claim, error) {
	note, err := json.Marshal(writes)
	if err == nil {
		err = os.MkdirAll(g.Claims, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("note what git writes: %w", err)
	}
	sum := sha256.Sum256(note)
	c, err := takeClaim(ctx, filepath.Join(g.Claims, hex.EncodeToString(sum[:])))
	if err != nil {
		return nil, err
	}
	if err := c.free(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.writes = writes
	if _, err = c.WriteAt(note, 0); err != nil { // the same note as before, if there was one
		return nil, errors.Join(fmt.Errorf("note what git writes: %w", err), c.Close())
	}
	return c, nil
}

// takeClaim opens the claim at path once no git process holds it, and makes it if it is missing.
// What the claim says was written for a git process that was killed; a new claim is empty.
func takeClaim(ctx context.Context, path string) (*claim, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("note what git writes: %w", err)
		}
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil && isAt(f, path): // else the git process that held it has removed it
			c := &claim{File: f}
			_ = json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&c.writes) // when only half of it was written, git had not started
			return c, nil
		case err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("note what git writes: %w", err), f.Close())
		}
		_ = f.Close()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("another git process of agency still writes it: %w", context.Cause(ctx))
		}
	}
}

// isAt reports whether the file at path is the open one.
func isAt(f *os.File, path string) bool {
	named, err := os.Lstat(path)
	held, heldErr := f.Stat()
	return err == nil && heldErr == nil && os.SameFile(named, held)
}

// freeWait is how long the lock of a branch must stay unchanged before it is removed: another git
// than agency's could have made it just now, and holds it for milliseconds.
const freeWait = time.Second

// free removes the git lock that a killed git left. A lock that is older than the claim, or that
// changes meanwhile, belongs to another git and stays.
func (c *claim) free(ctx context.Context) error {
	if c.writes.Ref == "" {
		return nil
	}
	root, err := os.OpenRoot(c.writes.CommonDir) // an agent can make links in there
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the lock of %s: %w", c.writes.Ref, err)
	}
	defer func() { _ = root.Close() }()
	lock := filepath.FromSlash(c.writes.Ref) + ".lock"
	left, err := c.left(root, lock)
	if err != nil || left == nil {
		return err
	}
	if strings.HasPrefix(c.writes.Ref, "refs/heads/") {
		select {
		case <-time.After(freeWait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now, err := root.Lstat(lock)
		if err != nil || !os.SameFile(left, now) || !now.ModTime().Equal(left.ModTime()) {
			return nil //nolint:nilerr // another git is at work there; if not, ours reports what is in its way
		}
	}
	if err := root.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the lock of %s that a killed git left: %w", c.writes.Ref, err)
	}
	return nil
}

// left returns the lock file if it was made since the claim; otherwise nil.
func (c *claim) left(root *os.Root, lock string) (fs.FileInfo, error) {
	found, err := root.Lstat(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the lock of %s: %w", c.writes.Ref, err)
	}
	since, err := c.Stat()
	if err != nil || !found.Mode().IsRegular() || found.ModTime().Before(since.ModTime()) {
		return nil, err
	}
	return found, nil
}

// done ends the claim of a git process. ended reports whether the process ended by itself; the lock
// of a killed process is removed now or by FreeClaims.
func (c *claim) done(ended bool) {
	if ended {
		_ = os.Remove(c.Name())
	}
	_ = c.Close()
	if !ended {
		_ = freeClaim(context.Background(), c.Name())
	}
}

// FreeClaims removes the locks on refs that killed git processes of agency left. It skips a ref
// that another git process still writes: the next one that writes it removes the lock.
func (g *Repos) FreeClaims(ctx context.Context) error {
	paths, err := filepath.Glob(filepath.Join(g.Claims, "*"))
	if g.Claims == "" || err != nil {
		return err
	}
	var failed []error
	for _, path := range paths {
		failed = append(failed, freeClaim(ctx, path))
	}
	return errors.Join(failed...)
}

func freeClaim(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*freeWait, errStillWritten)
	defer cancel()
	c, err := takeClaim(ctx, path)
	if errors.Is(err, errStillWritten) {
		return nil
	}
	if err != nil {
		return err
	}
	err = c.free(ctx)
	if err == nil {
		err = os.Remove(path)
	}
	return errors.Join(err, c.Close())
}

var errStillWritten = errors.New("a git of agency's writes it")
