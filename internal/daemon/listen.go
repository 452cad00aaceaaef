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

// listener accepts connections of the daemon's own user and closes all others. The mode of the socket says the same; this holds
// even where another program changed it. A daemon that another one follows in this process leaves it open: who connects in between
// waits for that one.
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

// Close ends Accept, and the listener unless it is handed on.
func (l *listener) Close() error {
	if l.handOn() {
		return l.SetDeadline(time.Unix(1, 0))
	}
	return l.UnixListener.Close()
}

// Next is the daemon that follows one whose Run returned ErrAgain.
func (d *Daemon) Next() *Daemon {
	next := &Daemon{Config: d.Config, Version: d.Version, Exec: d.Exec, Log: d.Log, Now: d.Now, Load: d.Load, End: d.End}
	if d.listener != nil {
		next.listener = &listener{d.listener.UnixListener, next.again.Load}
	}
	return next
}

// listen opens the socket for the owner alone, unless the daemon before this one left it open. The lock is held, so a socket that is
// there otherwise is a dead daemon's.
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

// open makes the socket, where none is.
func (d *Daemon) open(ctx context.Context) error {
	path := d.Config.Socket
	var config net.ListenConfig
	opened, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return startError("listen on %s: %w", path, err)
	}
	l := &listener{opened.(*net.UnixListener), d.again.Load}
	l.SetUnlinkOnClose(false)
	// Other users who connect before are turned away by the listener. A mask would hit the files that others make at the same time.
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(startError("make %s private: %w", path, err), l.UnixListener.Close())
	}
	d.listener = l
	return nil
}

// listenAgain makes a socket that was deleted once more, with its folder, and reports whether it did. The lock is held, so it can only
// be this daemon's. The old listener stays for what still waits in it.
func (d *Daemon) listenAgain(ctx context.Context) bool {
	if _, err := os.Lstat(d.Config.Socket); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var err error
	if filepath.Dir(d.Config.Socket) != d.Config.Home { // a data root that was removed stays removed
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

// endListening closes the listener, also one that a start that failed left open, and removes the socket, unless the next daemon of this
// process goes on with them.
func (d *Daemon) endListening() {
	if d.listener == nil {
		return
	}
	_ = d.listener.Close()
	if kept, _ := d.root.keep(); kept && !d.again.Load() { // else it is another daemon's
		_ = os.Remove(d.Config.Socket)
	}
}
