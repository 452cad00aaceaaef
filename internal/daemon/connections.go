package daemon

import (
	"net"
	"net/http"
	"sync"
	"time"

	"agency/internal/socket"
)

// How long a connection may wait for its client. These do not limit requests in progress, streams
// and wrappers.
const (
	headerWait = 10 * time.Second // for the head of a request, from its first byte or from the connection
	bodyWait   = 30 * time.Second // for the whole body
	idleWait   = time.Minute      // for the next request; longer than api.Client keeps an idle connection
)

// How many connections may wait at once for a request or its head: from one process, and in total.
const (
	waitingOfOne = 64
	waitingOfAll = 1024
	// freshFor is how long a new connection is safe from being closed because there are too many in
	// total: after a restart of the daemon, all wrappers connect and send their requests at the
	// same moment.
	freshFor = time.Second
)

// connections are the connections that wait for a request. When there are too many, the one that
// has waited longest is closed.
type connections struct {
	mu      sync.Mutex
	waiting map[net.Conn]waiting
	of      map[int]int // how many, by process
}

type waiting struct {
	pid   int
	since time.Time
}

// state handles a change of the state of a connection.
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

// wait records that a connection waits, and returns the one to close in its favour, if any.
func (c *connections) wait(conn net.Conn) (old net.Conn) {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return nil // already closed
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

// goOn records that a connection no longer waits.
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

// oldest returns the connection that has waited longest of those that match; nil when none does.
func (c *connections) oldest(some func(waiting) bool) (found net.Conn) {
	var since time.Time
	for conn, w := range c.waiting {
		if some(w) && (found == nil || w.since.Before(since)) {
			found, since = conn, w.since
		}
	}
	return found
}

// inTime limits the time that a client may take to send the body of its request.
func inTime(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // a test's writer has no deadline
		}
		next.ServeHTTP(w, r)
	})
}

// taken removes the limit of inTime: what comes after the body is the next request, and a request
// may take long.
func taken(w http.ResponseWriter) { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }
