package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agency/internal/api"
)

// lockTimeout bounds how long a start waits for a daemon that is ending. It must exceed what a stop takes at most: drainTimeout, the
// drain of the scheduler (5 s), the last write of the notifier (5 s), and what the supervisor and the store still have to close.
// spawnTimeout, which holds it, is longer.
const lockTimeout = 30 * time.Second

// LockPath is where a data root keeps its daemon's lock.
func LockPath(home string) string { return filepath.Join(home, "agencyd.lock") }

// lock takes the lock that only one daemon of a data root can hold. One that is just ending has closed its socket and
// lets go of the lock a moment later, so that is waited for.
func (d *Daemon) lock(ctx context.Context) (*flock.Flock, error) {
	lock := flock.New(LockPath(d.Config.Home), flock.SetPermissions(0o600))
	for deadline := time.Now().Add(lockTimeout); ; {
		ok, err := lock.TryLock()
		switch {
		case err != nil:
			return nil, startError("lock %s: %w", lock.Path(), err)
		case ok:
			d.tell(api.DoingStart)
			return lock, nil
		case answers(ctx, d.Config.Socket), time.Now().After(deadline):
			return nil, startError("another daemon serves this data root: %s is locked", lock.Path()).WithHint("agency daemon status")
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tell writes down what the daemon is doing. Only words for people depend on it, so it stops nothing when it fails.
func (d *Daemon) tell(doing string) {
	if err := tellHolder(d.Config.Home, doing); err != nil {
		d.Log.Warn("write into the lock", "err", err)
	}
}

// tellHolder writes into the lock file that this process holds it. What it says counts only while the lock is held. It is one write
// of one size, so that nobody reads half of it.
func tellHolder(home, doing string) error {
	f, err := os.OpenFile(LockPath(home), os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%-31s\n", strconv.Itoa(os.Getpid())+" "+doing)
	return errors.Join(err, f.Close())
}

// LockHolder is who holds a data root's lock, or held it last.
func LockHolder(home string) (api.Holder, error) {
	// A shared lock is in nobody's way who only looks, and who wants the other one tries again.
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
	h := api.Holder{Held: !free, Doing: api.DoingStart} // until it says more it has just taken the lock
	if words := strings.Fields(string(data)); len(words) == 2 {
		h.PID, _ = strconv.Atoi(words[0])
		h.Doing = words[1]
	}
	return h, nil
}
