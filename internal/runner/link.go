package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// helloWait is how long a new connection may take to introduce itself.
const helloWait = 5 * time.Second

// Link is the daemon's end of the connection to one wrapper. Hello comes first, then Serve, once;
// Input, Stop and Close may be called from any goroutine, and wait for Serve to begin.
type Link struct {
	wire    *wire
	id      agency.RunID
	tmux    string // socket of the tmux server
	version int    // of the wrapper's protocol

	welcomed chan struct{} // closed when the wrapper takes requests
	gone     chan struct{} // closed when the wrapper takes no more requests

	mu      sync.Mutex
	closed  bool
	next    uint64
	waiting map[uint64]chan message
	looks   map[uint64]lookFunc // the look for each request, by id
}

// Look looks at a runner's terminal right before something is typed into it. It returns whether the
// text to be typed is there already, unsent, or why nothing may be typed.
type Look = func(ctx context.Context, next agency.Typing) (unsent bool, err error)

// lookFunc is a Look within the time of its request.
type lookFunc func(next agency.Typing) (unsent bool, err error)

// linkBuffer holds most messages of a wrapper; a daemon may have a thousand links.
const linkBuffer = 512

// NewLink returns the daemon's end of an upgraded connection, which it owns from now on. tmux is
// the socket of the tmux server, which no wrapper may end.
func NewLink(conn net.Conn, tmux string) *Link {
	return &Link{
		tmux: tmux,
		wire: &wire{conn: conn, in: bufio.NewReaderSize(conn, linkBuffer)}, welcomed: make(chan struct{}), gone: make(chan struct{}), waiting: map[uint64]chan message{},
		looks: map[uint64]lookFunc{},
	}
}

// Hello reads the wrapper's introduction. The caller checks the token, and then calls Serve or
// Refuse.
func (l *Link) Hello(ctx context.Context) (agency.WrapperHello, error) {
	deadline := time.Now().Add(helloWait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := l.wire.conn.SetReadDeadline(deadline); err != nil {
		return agency.WrapperHello{}, fmt.Errorf("receive hello: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.wire.conn.SetReadDeadline(time.Unix(1, 0)) })
	m, err := l.wire.receive(helloLimit)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		return agency.WrapperHello{}, fmt.Errorf("receive hello: %w", err)
	}
	if m.Kind != kindHello || m.Hello == nil {
		return agency.WrapperHello{}, fmt.Errorf("receive hello: the first message is %.20q", m.Kind)
	}
	l.id, l.version = m.Hello.RunID, m.Hello.Version
	return *m.Hello, l.wire.conn.SetReadDeadline(time.Time{})
}

// Refuse makes the wrapper stop reconnecting, and closes the link: its token is wrong, or a newer
// attempt exists. Its runner continues.
func (l *Link) Refuse(why error) error {
	return errors.Join(l.wire.send(message{Kind: kindRefused, Error: toWire(why)}), l.Close())
}

// Serve welcomes the wrapper and reads until it leaves, which is not an error. It acknowledges each
// update after update returned nil; an error from update ends the link, and the wrapper reconnects
// with the same update. update must not call Input or Stop.
func (l *Link) Serve(update func(agency.WrapperUpdate) error) error {
	defer l.abandon()
	if err := l.wire.send(message{Kind: kindWelcome, Tmux: l.tmux}); err != nil {
		return err
	}
	close(l.welcomed)
	for {
		m, err := l.wire.receive(lineLimit)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil:
			return err
		case m.Kind == kindUpdate && m.Update != nil:
			if err := update(*m.Update); err != nil {
				return fmt.Errorf("take update of %s: %w", l.id, err)
			}
			if err := l.wire.send(message{Kind: kindAck, ID: m.ID}); err != nil {
				return err
			}
		case m.Kind == kindLook:
			go l.lookFor(m)
		case m.Kind == kindAnswer:
			l.mu.Lock()
			answer := l.waiting[m.ID]
			delete(l.waiting, m.ID)
			l.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		}
	}
}

// Input types a text into the runner's terminal, presses Enter, and returns the effect. The wrapper
// requests a look right before the text and right before the Enter, and types nothing after an
// error of look. The error is E_INPUT_REFUSED when a user is typing there, the run is headless, the
// runner does not read, or the text is empty, too long, or has control characters other than
// newline and tab; E_INVALID_STATE when the runner has ended. When ctx ends before the answer, or
// the wrapper goes away (io.ErrUnexpectedEOF), the text may still have been typed.
func (l *Link) Input(ctx context.Context, text string, look Look) (agency.Delivery, error) {
	if err := checkInput(text); err != nil {
		return agency.Delivery{Effect: agency.EffectNone}, err
	}
	return delivered(l.typing(ctx, message{Kind: kindInput, Text: text}, look))
}

// delivered returns the delivery of an answer.
func delivered(m message, err error) (agency.Delivery, error) {
	if err == nil {
		err = m.Error.err()
	}
	if m.Delivery == nil {
		m.Delivery = &agency.Delivery{Effect: agency.EffectNone}
	}
	return *m.Delivery, err
}

// Keys types keys into the runner's terminal unchanged and without Enter, after a look. It has the
// errors of Input. Only the terminal shows the effect.
func (l *Link) Keys(ctx context.Context, keys string, look Look) error {
	return errorOf(l.typing(ctx, message{Kind: kindKeys, Text: keys}, look))
}

// typing asks the wrapper to type. The wrapper requests each look. A wrapper of a version that does not is
// refused.
func (l *Link) typing(ctx context.Context, m message, look Look) (message, error) {
	if err := l.awaitWelcome(ctx); err != nil {
		return message{}, err
	}
	if l.version < lookVersion {
		return message{}, agency.Errorf(agency.CodeInputRefused, "the wrapper of %s is of an older agency, which types without a look at the terminal", l.id).
			WithHint("type yourself: agency attach %s; or start the agent again: agency resume --restart %s", l.id, l.id)
	}
	return l.ask(ctx, m, func(next agency.Typing) (bool, error) { return look(ctx, next) })
}

// lookVersion is the version since which a wrapper asks for a look before it types.
const lookVersion = 2

// Say says something to the runner in its own protocol, and returns how far that got: taken, or written
// and not acknowledged yet. The error is E_INVALID_STATE when the runner has ended, and for an answer to a
// request that is over; E_USAGE for a reply that does not fit its request. When ctx ends first, it may
// still have been said: say it again with the same id.
func (l *Link) Say(ctx context.Context, s agency.Saying) (agency.Delivery, error) {
	return delivered(l.ask(ctx, message{Kind: kindSay, Say: &s}, nil))
}

// lookFor looks for a request that is under way, and sends the result to the wrapper.
func (l *Link) lookFor(m message) {
	l.mu.Lock()
	look := l.looks[m.ID]
	l.mu.Unlock()
	unsent, err := false, error(agency.Errorf(agency.CodeInputRefused, "the request to type into %s was withdrawn", l.id))
	if look != nil {
		unsent, err = look(agency.Typing{Enter: m.Entering, Last: m.Text, Moved: m.Moved})
	}
	if l.wire.send(message{Kind: kindLooked, ID: m.ID, Unsent: unsent, Error: toWire(err)}) != nil {
		l.abandon()
	}
}

// Environ returns the environment that the wrapper gives its runner, without the token.
// An older wrapper does not answer.
func (l *Link) Environ(ctx context.Context) ([]string, error) {
	m, err := l.ask(ctx, message{Kind: kindEnviron}, nil)
	if err != nil {
		return nil, err
	}
	return m.Environ, m.Error.err()
}

// Allow lets the runner reach more hosts; it can be repeated. An older wrapper does not answer.
func (l *Link) Allow(ctx context.Context, entries []string) error {
	return errorOf(l.ask(ctx, message{Kind: kindAllow, Hosts: entries}, nil))
}

// Door makes the wrapper open a door for the agent's own terminal. The error is E_INVALID_STATE when the
// wrapper is too old, or no terminal can join now.
func (l *Link) Door(ctx context.Context) (agency.Door, error) {
	if err := l.awaitWelcome(ctx); err != nil {
		return agency.Door{}, err
	}
	if l.version < doorVersion {
		return agency.Door{}, agency.Errorf(agency.CodeInvalidState, "the wrapper of %s is of an older agency, which takes no guests", l.id).
			WithHint("agency resume --restart %s", l.id)
	}
	m, err := l.ask(ctx, message{Kind: kindDoor}, nil)
	switch {
	case err != nil:
		return agency.Door{}, err
	case m.Error == nil && m.Door == nil:
		return agency.Door{}, fmt.Errorf("the wrapper of %s named no door", l.id)
	case m.Error != nil:
		return agency.Door{}, m.Error.err()
	}
	return *m.Door, nil
}

// doorVersion is the version since which a wrapper takes guests.
const doorVersion = 4

// Stop makes the wrapper end its runner, and returns when the first signals are sent; the exit
// arrives as an update. A second Stop changes nothing. Stopping a runner that has ended is not an
// error.
func (l *Link) Stop(ctx context.Context, by agency.EndedBy) error {
	return errorOf(l.ask(ctx, message{Kind: kindStop, By: by}, nil))
}

// Force is Stop, but ends the grace of a stop that is under way: what still runs is killed.
func (l *Link) Force(ctx context.Context) error {
	return errorOf(l.ask(ctx, message{Kind: kindStop, By: agency.EndedByStop, Force: true}, nil))
}

// errorOf returns the error of an answer that holds nothing else.
func errorOf(m message, err error) error {
	if err != nil {
		return err
	}
	return m.Error.err()
}

// Go lets a wrapper that waits for it start its runner; others ignore it. It waits until the
// wrapper is welcome. The start arrives as an update.
func (l *Link) Go(ctx context.Context) error {
	if err := l.awaitWelcome(ctx); err != nil {
		return err
	}
	return l.wire.send(message{Kind: kindGo})
}

// Close ends the connection and with it Serve. The wrapper continues and tries to reconnect.
func (l *Link) Close() error {
	l.abandon()
	return nil
}

// awaitWelcome waits until the wrapper takes requests.
func (l *Link) awaitWelcome(ctx context.Context) error {
	select {
	case <-l.welcomed:
		return nil
	case <-l.gone:
		return l.notConnected()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends a request and waits for its answer; look looks at the terminal for it.
func (l *Link) ask(ctx context.Context, m message, look lookFunc) (message, error) {
	if err := l.awaitWelcome(ctx); err != nil {
		return message{}, err
	}
	answer := make(chan message, 1)
	l.mu.Lock()
	l.next++
	m.ID = l.next
	l.waiting[m.ID] = answer
	if look != nil {
		l.looks[m.ID] = look
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, m.ID)
		delete(l.looks, m.ID)
	}()
	if err := l.wire.send(m); err != nil {
		l.abandon()
	}
	select {
	case reply := <-answer:
		return reply, nil
	case <-l.gone:
		e := l.notConnected()
		e.Err = io.ErrUnexpectedEOF
		return message{}, e
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

func (l *Link) notConnected() *agency.Error {
	return agency.Errorf(agency.CodeInvalidState, "the wrapper of %s is not connected", l.id).WithHint("agency show %s", l.id)
}

// abandon closes the connection and ends all waits for an answer.
func (l *Link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		_ = l.wire.conn.Close()
		close(l.gone)
	}
}
