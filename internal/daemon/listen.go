package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"agency/internal/socket"
)

// listener accepts connections of the daemon's own user and closes all others. The mode of the
// socket has the same effect; this one holds even when another program changes the mode. A daemon
// with a successor in this process leaves it open: clients that connect in between wait for the
// successor.
type listener struct {
	*net.UnixListener
	handOn func() bool
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.UnixListener.Accept()
		if err != nil {
			return nil, err
		}
		if peer, err := socket.PeerOf(conn); err == nil && peer.UID == os.Getuid() {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// Close ends Accept. It closes the listener too, unless the next daemon takes it over.
func (l *listener) Close() error {
	if l.handOn() {
		return l.SetDeadline(time.Unix(1, 0))
	}
	return l.UnixListener.Close()
}

// Next returns the daemon that follows one whose Run returned ErrAgain.
func (d *Daemon) Next() *Daemon {
	next := &Daemon{Config: d.Config, Version: d.Version, Exec: d.Exec, Log: d.Log, Now: d.Now, Load: d.Load, End: d.End}
	if d.listener != nil {
		next.listener = &listener{d.listener.UnixListener, next.isFollowed}
	}
	return next
}

// listen opens the socket for the owner alone, unless the daemon before this one left it open. This
// process holds the lock, so any other socket there is left from a dead daemon.
func (d *Daemon) listen(ctx context.Context) error {
	path := d.Config.Socket
	info, err := os.Lstat(path)
	if d.listener != nil {
		if err == nil && info.Mode()&fs.ModeSocket != 0 {
			return d.listener.SetDeadline(time.Time{})
		}
		_ = d.listener.UnixListener.Close()
		d.listener = nil
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return startError("look at %s: %w", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		return startError("%s is there and is not a socket", path).WithHint("move it away, or set AGENCY_SOCKET to another path")
	default:
		if answers(ctx, path) {
			return startError("another program listens on %s", path).WithHint("set AGENCY_SOCKET to another path")
		}
		if err := os.Remove(path); err != nil {
			return startError("remove the dead socket %s: %w", path, err)
		}
	}
	return d.open(ctx)
}

// open makes the socket; there must be none.
func (d *Daemon) open(ctx context.Context) error {
	path := d.Config.Socket
	var config net.ListenConfig
	opened, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return startError("listen on %s: %w", path, err)
	}
	l := &listener{opened.(*net.UnixListener), d.isFollowed}
	l.SetUnlinkOnClose(false)
	// The listener rejects other users who connect before this. A umask would affect files that
	// other goroutines make at the same time.
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(startError("make %s private: %w", path, err), l.UnixListener.Close())
	}
	d.listener = l
	return nil
}

// listenAgain makes a deleted socket again, with its folder, and reports whether it did. This
// process holds the lock, so the socket can only be this daemon's. The old listener stays open for
// connections that still wait in it.
func (d *Daemon) listenAgain(ctx context.Context) bool {
	if _, err := os.Lstat(d.Config.Socket); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var err error
	if filepath.Dir(d.Config.Socket) != d.Config.Home { // a removed data root stays removed
		err = makeSocketFolder(d.Config)
	}
	if err == nil {
		err = d.open(ctx)
	}
	if err != nil {
		if text := err.Error(); text != d.unheard {
			d.Log.Error("listen again", "err", err)
			d.unheard = text
		}
		return false
	}
	d.unheard = ""
	d.Log.Warn("the socket was gone, listening again", "socket", d.Config.Socket)
	return true
}

// endListening closes the listener, also after a failed start, and removes the socket, unless the
// next daemon of this process takes them over.
func (d *Daemon) endListening() {
	if d.listener == nil {
		return
	}
	_ = d.listener.Close()
	if kept, _ := d.root.keep(); kept && !d.isFollowed() { // otherwise the socket is another daemon's
		_ = os.Remove(d.Config.Socket)
	}
}
