package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"agency"
	"agency/internal/socket"
)

// doorLimit is how long a door waits for its guest, whose program may be slow to start.
const doorLimit = 60 * time.Second

// knockLimit is how long a guest may take from its connection to the end of its HTTP request.
const knockLimit = 10 * time.Second

// doors are the sockets at which guests join the conversation with a runner. Each takes one guest, the
// agent's own terminal.
type doors struct {
	speech *speech
	family *family // knows the tmux server
	// dir is the folder of the doors of this run. It is beside the socket of the daemon, out of the reach
	// of a sandbox and short enough for the kernel.
	dir string
}

func newDoors(s *speech, f *family) *doors {
	id := string(s.launch.RunID)
	return &doors{speech: s, family: f, dir: filepath.Join(filepath.Dir(s.launch.Socket), "g"+strings.ToLower(id[max(0, len(id)-6):]))}
}

// open opens a door for one guest, which has doorLimit to come.
func (d *doors) open() (*agency.Door, error) {
	s := d.speech
	opened := s.await(takenLimit, s.opened)
	switch {
	case s.ended():
		return nil, endedError(s.launch.RunID)
	case !opened:
		return nil, startingError(agency.CodeInvalidState, s.launch.RunID)
	}
	s.mu.Lock()
	err, conversation := s.talk.Joins(), s.talk.Place.Conversation
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(d.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make the folder of the door: %w", err)
	}
	if err := ownFolder(d.dir); err != nil {
		return nil, err
	}
	path := filepath.Join(d.dir, rand.Text()[:6])
	if err := d.openAt(path); err != nil {
		return nil, err
	}
	return &agency.Door{Socket: path, Conversation: conversation}, nil
}

// openAt opens a door at a path.
func (d *doors) openAt(path string) error {
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > limit {
		return agency.Errorf(agency.CodeSocketPathInvalid, "the socket %s would have %d bytes, and a socket's path has at most %d", path, len(path), limit).
			WithHint("set AGENCY_SOCKET to a shorter path, and agency resume --restart")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return fmt.Errorf("open the door: %w", err)
	}
	d.receive(l, path)
	return nil
}

// joinedMark is the suffix of a file beside a door. It shows that the guest is there, or may come back.
const joinedMark = ".in"

// reopen opens the doors of the guests that an earlier wrapper had when it was killed: the agent's own
// terminal may try to come back. It leaves all other doors alone, since one may be open already.
func (d *doors) reopen() {
	d.speech.mu.Lock()
	joins := d.speech.talk.Joins() == nil
	d.speech.mu.Unlock()
	entries, err := os.ReadDir(d.dir)
	if err != nil || !joins || ownFolder(d.dir) != nil {
		return
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), joinedMark); ok {
			path := filepath.Join(d.dir, name)
			_ = os.Remove(path) // of a wrapper that was killed before the guest came back
			_ = d.openAt(path)
		}
	}
}

// ownFolder returns an error unless dir is a folder that only this user can use.
func ownFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of the door: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || socket.Owner(info) != os.Getuid() {
		return agency.Errorf(agency.CodePermissionDenied, "%s is not a folder of yours alone", dir).WithHint("remove it: rm -r -- %s", dir)
	}
	return nil
}

// receive takes one guest at a door, and then closes the door.
func (d *doors) receive(l net.Listener, path string) {
	var taken atomic.Bool
	server := &http.Server{ReadHeaderTimeout: knockLimit, ConnContext: d.withPeer}
	server.SetKeepAlivesEnabled(false) // a process that is refused cannot keep its connection
	server.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if err, _ := r.Context().Value(peerKey{}).(error); err != nil {
			http.Error(out, err.Error(), http.StatusForbidden)
			return
		}
		if taken.Load() {
			http.Error(out, "another terminal came first", http.StatusGone)
			return
		}
		conn, err := websocket.Accept(out, r, nil)
		if err != nil {
			return // Accept has answered
		}
		if taken.Swap(true) {
			_ = conn.Close(websocket.StatusTryAgainLater, "another terminal came first")
			return
		}
		_ = l.Close()
		_ = os.WriteFile(path+joinedMark, nil, 0o600)
		d.speech.host(conn)
		_ = os.Remove(path + joinedMark)
		_ = server.Close()
	})
	late := time.AfterFunc(doorLimit, func() { _, _ = l.Close(), os.Remove(path+joinedMark) })
	go func() {
		_ = server.Serve(l) // until the listener is closed
		late.Stop()
	}()
}

type peerKey struct{}

// withPeer keeps in the context of a connection why the process at its other end may not be a guest.
func (d *doors) withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, d.checkGuest(conn))
}

// checkGuest refuses the processes of other users, and those of runs: the door is for the user. A process
// of a run that hides its mark still has an ancestor with the mark. The ancestors of a program in a tmux
// window count only up to the tmux server, which any run may have started.
func (d *doors) checkGuest(conn net.Conn) error {
	peer, err := socket.PeerOf(conn)
	switch {
	case err != nil:
		return err
	case peer.UID != os.Getuid():
		return errors.New("a process of another user")
	}
	line, err := ancestors(peer.PID)
	if err != nil {
		return err
	}
	server := 0
	if tmux := d.family.tmux.Load(); tmux != nil {
		server = listenerOf(*tmux)
	}
	for _, p := range line {
		if p.pid == server {
			break
		}
		number, err := rlimitOf(p.pid)
		env, unread := environ(p.pid) // that of another user's process cannot be read
		if p.pid == peer.PID {
			err = errors.Join(err, unread)
		}
		switch {
		case err != nil:
			return err
		case number != 0 || entry(env, "AGENCY_RUN_ID") != "":
			return errors.New("a process of a run")
		}
	}
	return nil
}

// close removes the doors of a runner that has ended.
func (d *doors) close() { _ = os.RemoveAll(d.dir) }
