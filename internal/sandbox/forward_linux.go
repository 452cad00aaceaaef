package sandbox

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// FirstPort is the number of the first open file that is a listener for a port of a container.
const FirstPort = 4

// mostForwarded is how many connections to the ports of a container there may be.
const mostForwarded = 256

// acceptPause is the time between tries to accept a connection without open files or memory.
const acceptPause = 100 * time.Millisecond

// forwards passes connections of the machine to the ports of a container: the first program there
// connects to the port on the container's own loopback and passes the connection out, so no network
// leads in or out.
type forwards struct {
	slots chan struct{} // a token for each connection

	mu      sync.Mutex // also held while sending
	link    *net.UnixConn
	last    uint64
	waiting map[uint64]net.Conn // connections outside that wait for one inside, by number
}

func newForwards(link *net.UnixConn) *forwards {
	return &forwards{slots: make(chan struct{}, mostForwarded), link: link, waiting: map[uint64]net.Conn{}}
}

// send sends an order to the inside.
func (f *forwards) send(o order) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return send(f.link, o)
}

// open forwards the connections to a listener, which is an open file, until the container ends.
func (f *forwards) open(fd, port int) {
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "port")
	l, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		return
	}
	go f.serve(l, port)
}

// serve forwards the connections to a listener until it is closed. While the carrier is out of open files or
// memory, connections wait.
func (f *forwards) serve(l net.Listener, port int) {
	defer func() { _ = l.Close() }()
	for {
		f.slots <- struct{}{}
		conn, err := l.Accept()
		switch {
		case agency.Exhausted(err):
			<-f.slots
			time.Sleep(acceptPause)
			continue
		case err != nil:
			<-f.slots
			return
		}
		if err := f.ask(conn, port); err != nil {
			_ = conn.Close()
			<-f.slots
		}
	}
}

// ask asks the first program inside to connect to a port, for a connection outside.
func (f *forwards) ask(conn net.Conn, port int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	f.waiting[f.last] = conn
	err := send(f.link, order{Port: port, Of: f.last})
	if err != nil {
		delete(f.waiting, f.last)
	}
	return err
}

// connected joins a connection outside with the one that came from inside. Without a file, no program listens
// on the port inside, and the connection outside is closed.
func (f *forwards) connected(number uint64, files []int) {
	f.mu.Lock()
	outside, known := f.waiting[number]
	delete(f.waiting, number)
	f.mu.Unlock()
	var inside net.Conn
	for i, fd := range files {
		file := os.NewFile(uintptr(fd), "connection")
		if i == 0 && known {
			inside, _ = net.FileConn(file)
		}
		_ = file.Close()
	}
	switch {
	case !known:
		return
	case inside == nil:
		_ = outside.Close()
		<-f.slots
		return
	}
	go func() {
		defer func() { <-f.slots }()
		join(outside, inside)
	}()
}

// join copies between two connections until both directions have ended.
func join(a, b net.Conn) {
	defer func() { _, _ = a.Close(), b.Close() }()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
}
