package socket

import (
	"errors"
	"net"
	"sync"
)

// Slots limits how many connections listeners have at a time. It is safe for concurrent use.
type Slots chan struct{} // a token for each connection

// NewSlots returns slots for a number of connections.
func NewSlots(most int) Slots { return make(Slots, most) }

// Listener returns a listener that accepts the connections of l, each only when a slot is free. A
// connection has its slot until it is closed. Close closes l; an Accept that waits for a slot returns
// when it gets one.
func (s Slots) Listener(l net.Listener) net.Listener { return &limited{l, s} }

type limited struct {
	net.Listener

	slots Slots
}

func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// slotted is a connection that gives its slot back.
type slotted struct {
	net.Conn

	release func()
}

func (s *slotted) Close() error {
	defer s.release()
	return s.Conn.Close()
}

// CloseWrite closes the sending side of the connection.
func (s *slotted) CloseWrite() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
