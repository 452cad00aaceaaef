package daemon

import (
	"net"
	"net/http"
	"sync"
	"time"

	"agency/internal/socket"
)

// How long a connection may wait for its client. Requests that are under way, streams and wrappers are not bounded by these.
const (
	headerWait = 10 * time.Second // for the head of a request, from its first byte or the connection on
	bodyWait   = 30 * time.Second // for the whole body
	idleWait   = time.Minute      // for the next request; longer than api.Client keeps a connection that it does not use
)

// How many connections may wait at once, for a request or its head: of one process, and of all.
const (
	waitingOfOne = 64
	waitingOfAll = 1024
	// freshFor is how long a new connection is left alone when all together are too many: after a restart of the daemon every wrapper
	// comes at the same moment, and asks at once.
	freshFor = time.Second
)

// connections are those that wait for a request. When there are too many the one that has waited longest is closed.
type connections struct {
	mu      sync.Mutex
	waiting map[net.Conn]waiting
	of      map[int]int // how many by process
}

type waiting struct {
	pid   int
	since time.Time
}

// state is told how a connection goes on.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew, http.StateIdle:
		if old := c.wait(conn); old != nil {
			_ = old.Close()
		}
	default:
		c.goOn(conn)
	}
}

// wait notes that a connection waits, and returns the one to close for it.
func (c *connections) wait(conn net.Conn) (old net.Conn) {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return nil // it is closed already
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting, c.of = map[net.Conn]waiting{}, map[int]int{}
	}
	now := time.Now()
	if _, known := c.waiting[conn]; !known {
		c.of[peer.PID]++
	}
	c.waiting[conn] = waiting{peer.PID, now}
	switch {
	case c.of[peer.PID] > waitingOfOne:
		return c.oldest(func(w waiting) bool { return w.pid == peer.PID })
	case len(c.waiting) > waitingOfAll:
		return c.oldest(func(w waiting) bool { return now.Sub(w.since) > freshFor })
	default:
		return nil
	}
}

// goOn notes that a connection does not wait any more.
func (c *connections) goOn(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known := c.waiting[conn]
	if !known {
		return
	}
	delete(c.waiting, conn)
	if c.of[w.pid]--; c.of[w.pid] == 0 {
		delete(c.of, w.pid)
	}
}

// oldest is the connection that has waited longest of some.
func (c *connections) oldest(some func(waiting) bool) (found net.Conn) {
	var since time.Time
	for conn, w := range c.waiting {
		if some(w) && (found == nil || w.since.Before(since)) {
			found, since = conn, w.since
		}
	}
	return found
}

// inTime bounds the time that a client may take to send the body of its request.
func inTime(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // a test's writer has none
		}
		next.ServeHTTP(w, r)
	})
}

// taken ends the bound of inTime: what comes after the body is the next request, and a request may take long.
func taken(w http.ResponseWriter) { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }
