package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agency/internal/api"
	"agency/internal/runner"
)

// lockTimeout bounds how long a start waits for a daemon that is ending. It must be longer than a
// stop takes at most: drainTimeout, the drain of the scheduler (5 s), the last write of the
// notifier (5 s), and the time that the supervisor and the store need to close. spawnTimeout
// includes it and is longer.
const lockTimeout = 30 * time.Second

// LockPath returns the path of the daemon's lock of a data root.
func LockPath(home string) string { return filepath.Join(home, "agencyd.lock") }

// rootLock is the lock of a data root, held by this process. The kernel locks a file, not its name:
// when the file is deleted or replaced, another process can lock the new file of that name.
type rootLock struct {
	path string

	mu   sync.Mutex
	file *flock.Flock
	info fs.FileInfo // of the locked file
}

// tryLock takes the lock of a data root. It returns nil when another process holds it. flags are
// for opening the file.
func tryLock(path string, flags int) (*rootLock, error) {
	file := flock.New(path, flock.SetFlag(flags), flock.SetPermissions(0o600))
	ok, err := file.TryLock()
	if err != nil || !ok {
		return nil, err
	}
	l := &rootLock{path: path, file: file}
	if l.info, err = file.Stat(); err != nil {
		return nil, errors.Join(err, file.Unlock())
	}
	if named, err := os.Lstat(path); err != nil || !os.SameFile(named, l.info) {
		return nil, file.Unlock() // it was deleted before it was locked
	}
	return l, nil
}

// awaitLock waits for the lock of a data root. It returns nil when giveUp returns true first.
func awaitLock(ctx context.Context, home string, giveUp func() bool) (*rootLock, error) {
	for {
		l, err := tryLock(LockPath(home), os.O_CREATE|os.O_RDWR)
		if l != nil || err != nil || giveUp() {
			return l, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// keep reports whether this process still holds the data root. When the lock file was deleted, it
// makes and locks a new one, unless another process was faster. An error other than a missing file
// proves nothing.
func (l *rootLock) keep() (kept, renewed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	named, err := os.Lstat(l.path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err != nil || os.SameFile(named, l.info), false
	}
	fresh, err := tryLock(l.path, os.O_CREATE|os.O_EXCL|os.O_RDWR)
	if fresh == nil || err != nil {
		return false, false
	}
	_ = l.file.Unlock()
	l.file, l.info = fresh.file, fresh.info
	return true, true
}

func (l *rootLock) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Unlock()
}

// lock takes the lock that only one daemon of a data root can hold. It waits for a daemon that is
// just ending, which has closed its socket and releases the lock a moment later.
func (d *Daemon) lock(ctx context.Context) (*rootLock, error) {
	deadline := time.Now().Add(lockTimeout)
	l, err := awaitLock(ctx, d.Config.Home, func() bool { return answers(ctx, d.Config.Socket) || time.Now().After(deadline) })
	path := LockPath(d.Config.Home)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, startError("lock %s: %w", path, err)
	case l == nil:
		return nil, startError("another daemon serves this data root: %s is locked", path).WithHint("agency daemon status")
	}
	recordDoing(d.Config.Home, d.Log, api.DoingStart)
	return l, nil
}

// recordDoing records what the daemon is doing. Only messages to users depend on it, so a failure
// stops nothing.
func recordDoing(home string, log *slog.Logger, doing string) {
	if err := writeHolder(home, doing); err != nil {
		log.Warn("write into the lock", "err", err)
	}
}

// writeHolder records in the lock file that this process holds it, and what it is doing. The text
// is valid only while the lock is held. It is one write of a fixed size, so that no reader sees
// half of it.
func writeHolder(home, doing string) error {
	f, err := os.OpenFile(LockPath(home), os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%-31s\n", strconv.Itoa(os.Getpid())+" "+doing)
	return errors.Join(err, f.Close())
}

// LockHolder returns the process that holds the lock of a data root, or that held it last.
func LockHolder(home string) (api.Holder, error) {
	// A shared lock does not disturb other readers, and a daemon that needs the exclusive lock
	// tries again.
	lock := flock.New(LockPath(home), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	defer func() { _ = lock.Unlock() }()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return api.Holder{}, nil
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(LockPath(home))
	}
	if err != nil {
		return api.Holder{}, fmt.Errorf("look at the daemon's lock: %w", err)
	}
	h := api.Holder{Locked: !free, Doing: api.DoingStart} // until the file has more, the lock has just been taken
	if words := strings.Fields(string(data)); len(words) == 2 {
		h.PID, _ = strconv.Atoi(words[0])
		h.Doing = words[1]
		h.Suspended = h.Locked && runner.Suspended(h.PID)
	}
	return h, nil
}
