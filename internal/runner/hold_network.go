package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/socket"
)

// A runner in the mode protocol outlives a wrapper that is killed, and with it the proxy. So its
// holder keeps the listeners of its sandbox's network, and gives duplicates of them to each wrapper
// that asks. A connection that comes without a wrapper waits until the next wrapper accepts it.

// The socket by which wrappers ask a holder. It is a file in a folder that no sandbox has. An abstract
// socket could be reached by every agent that has the network of the machine.
const (
	heldFolder = "wrapper" // that of the heartbeat
	heldSocket = "network.sock"
)

// heldNetwork is the number of the open file by which a holder inherits that socket, if its program has a
// network to hold. The program gets another socket under this number.
const heldNetwork = 3

// passLimit is how long a wrapper may take to read what a holder gives it.
const passLimit = 5 * time.Second

// connectHeld is connect for a runner that has a holder.
func (n *network) connectHeld(attr *syscall.ProcAttr) (done func(started bool), err error) {
	listening, err := listenHeld(n.launch.AttemptDir)
	if err != nil {
		return nil, fmt.Errorf("make the socket of the network: %w", err)
	}
	attr.Files = append(attr.Files, listening.Fd())
	return func(started bool) {
		_ = listening.Close()
		if started {
			go n.serveHeld()
		}
	}, nil
}

// listenHeld opens the socket by which wrappers will ask a holder.
func listenHeld(attemptDir string) (*os.File, error) {
	folder := filepath.Join(attemptDir, heldFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	l, err := socket.Listen(folder, heldSocket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }() // the holder has the file, and listens on
	return l.File()
}

// removeHeld removes the socket of a holder, if it is there.
func removeHeld(attemptDir string) { _ = os.Remove(filepath.Join(attemptDir, heldFolder, heldSocket)) }

// serveHeld serves the listeners of a runner's sandbox, once the holder has them.
func (n *network) serveHeld() {
	listeners, err := askHolder(n.launch.AttemptDir)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.ECONNREFUSED):
		// The sandbox ended before it listened, or its holder has ended.
	case err != nil:
		n.proxy.Broken(fmt.Errorf("agency's proxy did not get the sockets of the sandbox: %w", err))
	default:
		n.client.network(n.use())
		n.proxy.Serve(listeners)
	}
}

// askHolder returns the listeners that a holder keeps. It waits until the sandbox has passed them, or
// has ended.
func askHolder(attemptDir string) ([]net.Listener, error) {
	path, done, err := socket.Short(filepath.Join(attemptDir, heldFolder), heldSocket)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	conn, err := socket.Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	files, err := filesFrom(conn)
	if err != nil {
		return nil, err
	}
	return listenersOf(files)
}

// end removes what a runner that has ended, and its holder, left of its network.
func (n *network) end() {
	if n.proxy != nil && n.launch.Mode == agency.ModeProtocol {
		removeHeld(n.launch.AttemptDir)
	}
}

// inherited reports whether this process inherited an open file with this number. A file that it opened
// itself has the flag FD_CLOEXEC.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// programFiles returns the first files for the program of a holder; the program inherits the later ones,
// the ports of a container. The holder calls given when the program has them. given closes the input and
// output of the holder. With a network to hold, the program gets a socket by which its sandbox passes the
// listeners, and given begins to keep these.
func programFiles() (files []uintptr, given func(), err error) {
	files = []uintptr{0, 1, 2}
	keep := func() {}
	if inherited(heldNetwork) {
		asked := os.NewFile(heldNetwork, heldSocket)
		l, err := net.FileListener(asked)
		if err != nil {
			return nil, nil, err
		}
		own, theirs, err := passingPair()
		if err != nil {
			return nil, nil, err
		}
		files = append(files, theirs.Fd())
		keep = func() {
			_, _ = asked.Close(), theirs.Close()
			go keepListeners(own, l)
		}
	}
	return files, func() {
		for fd := range 3 {
			_ = unix.Close(fd)
		}
		keep()
	}, nil
}

// keepListeners receives the listeners that a sandbox passes, and gives them to each process of this user
// that connects. A process that connects earlier waits for them.
func keepListeners(own *os.File, l net.Listener) {
	files, err := receiveFiles(own)
	if err != nil { // the sandbox has ended; closing ends the wait of each process that connected
		_ = l.Close()
		return
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			time.Sleep(passLimit) // out of files or memory: the next wrapper waits
			continue
		}
		giveFiles(conn, files)
	}
}

// giveFiles passes files to a process of this user.
func giveFiles(conn net.Conn, files []int) {
	defer func() { _ = conn.Close() }()
	passing, ok := conn.(*net.UnixConn)
	peer, err := socket.PeerOf(conn)
	if !ok || err != nil || peer.UID != os.Getuid() {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(passLimit))
	_, _, _ = passing.WriteMsgUnix([]byte{byte(len(files))}, unix.UnixRights(files...), nil)
}
