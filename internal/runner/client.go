package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/socket"
)

// Times of the connection to the daemon.
const (
	dialLimit   = 5 * time.Second
	backoffMin  = 20 * time.Millisecond
	backoffMax  = 250 * time.Millisecond
	outputEvery = time.Second // how often to report output, at most
)

// errRefused means that the daemon refuses this attempt for good.
var errRefused = errors.New("the daemon refused this attempt")

// client is the wrapper's end of the connection to the daemon. It reconnects for as long as the
// attempt lives, and sends the whole state each time.
type client struct {
	launch  *agency.Launch
	self    agency.Process
	wrapper *wrapper

	mu      sync.Mutex
	state   agency.WrapperUpdate
	changed chan struct{} // holds a token when the state has changed

	exitTaken chan struct{} // closed when the daemon has acknowledged the exit
	once      sync.Once
	answering atomic.Int64 // requests of the daemon that are not answered yet
}

// lookLimit is how long the daemon may take to look at a terminal.
const lookLimit = 10 * time.Second

func newClient(launch *agency.Launch, self agency.Process, w *wrapper) *client {
	return &client{launch: launch, self: self, wrapper: w, changed: make(chan struct{}, 1), exitTaken: make(chan struct{})}
}

func (c *client) started(start agency.Start, spans []agency.Span) {
	c.change(func(u *agency.WrapperUpdate) { u.Start, u.Spans = &start, spans })
}

func (c *client) ended(exit agency.Exit) { c.change(func(u *agency.WrapperUpdate) { u.Exit = &exit }) }

// network sends what the runner did with its network.
func (c *client) network(use *agency.NetworkUse) {
	c.change(func(u *agency.WrapperUpdate) { u.Network = use })
}

// limits sends how the limits are enforced, and which the runner has reached.
func (c *client) limits(use *agency.LimitUse) {
	c.change(func(u *agency.WrapperUpdate) { u.Limits = use })
}

func (c *client) change(set func(*agency.WrapperUpdate)) {
	c.mu.Lock()
	set(&c.state)
	c.mu.Unlock()
	wake(c.changed)
}

// run keeps a connection until ctx ends, the exit is acknowledged, or the daemon refuses the
// attempt.
func (c *client) run(ctx context.Context) {
	backoff := time.Duration(0)
	for {
		welcome := false
		_, err := os.Lstat(c.launch.Socket) // a stopped daemon leaves no socket, and checking is cheaper than connecting
		if err == nil {
			welcome, err = c.connect(ctx)
		}
		if errors.Is(err, errRefused) || closed(c.exitTaken) || ctx.Err() != nil {
			return
		}
		backoff = min(max(2*backoff, backoffMin), backoffMax)
		if welcome {
			backoff = backoffMin
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

// connect handles one connection to the daemon. welcome reports whether the daemon welcomed the
// wrapper.
func (c *client) connect(ctx context.Context) (welcome bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := socket.Dial(dialing, c.launch.Socket)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	wire, err := upgrade(ctx, conn)
	if err != nil {
		return false, err
	}
	hello := agency.WrapperHello{RunID: c.launch.RunID, Attempt: c.launch.Attempt, Token: c.launch.Token, Wrapper: c.self, Version: protocolVersion}
	if err := wire.send(message{Kind: kindHello, Hello: &hello}); err != nil {
		return false, err
	}
	m, err := wire.receive(lineLimit)
	for err == nil && m.Kind != kindWelcome && m.Kind != kindRefused {
		m, err = wire.receive(lineLimit)
	}
	if err != nil {
		return false, err
	}
	if m.Kind == kindRefused {
		return false, errRefused
	}
	c.wrapper.family.tmux.Store(&m.Tmux)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return true, err
	}
	return true, c.talk(ctx, wire)
}

// upgrade turns an HTTP connection into a wire. Its deadline stays set until the welcome.
func upgrade(ctx context.Context, conn net.Conn) (*wire, error) {
	if err := conn.SetDeadline(time.Now().Add(dialLimit)); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agency/v1/wrapper", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "agency-wrapper")
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return &wire{conn: conn, in: in}, nil
	case http.StatusForbidden, http.StatusConflict:
		return nil, errRefused
	default:
		return nil, fmt.Errorf("connect to the daemon: %s", resp.Status)
	}
}

// talk sends updates and handles requests until the connection ends.
func (c *client) talk(ctx context.Context, wire *wire) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { _ = wire.conn.Close() }()
	defer cancel()

	received := make(chan error, 1)
	acked := make(chan uint64, 16)
	go func() { received <- c.receive(ctx, wire, acked) }()

	var due <-chan time.Time // when output is to be reported
	var sent, withExit uint64
	wake(c.changed) // the other end of a new connection knows nothing
	for {
		select {
		case <-c.changed:
			update := c.update()
			sent++
			if update.Exit != nil && withExit == 0 {
				withExit = sent
			}
			if err := wire.send(message{Kind: kindUpdate, ID: sent, Update: &update}); err != nil {
				return err
			}
		case id := <-acked:
			if withExit != 0 && id >= withExit {
				c.once.Do(func() { close(c.exitTaken) })
			}
		case <-c.wrapper.out.came:
			if due == nil {
				due = time.After(outputEvery)
			}
		case <-due:
			due = nil
			wake(c.changed)
		case err := <-received:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive handles requests until the connection ends, and returns why. The numbers of updates that
// the daemon has go to acked.
func (c *client) receive(ctx context.Context, wire *wire, acked chan<- uint64) error {
	var looks lookouts
	for {
		m, err := wire.receive(lineLimit)
		if err == nil && m.Kind == kindRefused {
			err = errRefused
		}
		if err != nil {
			return err
		}
		switch m.Kind {
		case kindAck:
			select {
			case acked <- m.ID:
			case <-ctx.Done():
			}
		case kindLooked:
			looks.answer(m)
		case kindGo:
			c.wrapper.letGo()
		case kindInput, kindKeys, kindSay, kindStop, kindEnviron, kindAllow, kindDoor:
			// In a goroutine each: a stop must not wait for an input that the runner does not
			// read.
			c.answering.Add(1)
			go func() {
				defer c.answering.Add(-1)
				_ = wire.send(c.answer(m, func(next agency.Typing) (bool, error) { return looks.ask(ctx, wire, m.ID, next) }))
			}()
		}
	}
}

// answerLimit is how long the wrapper stays to send its last answers.
const answerLimit = 500 * time.Millisecond

// answered waits a moment until the daemon has all answers, such as the one to the message that made the
// runner end.
func (c *client) answered() {
	for begin := time.Now(); c.answering.Load() > 0 && time.Since(begin) < answerLimit; time.Sleep(time.Millisecond) {
	}
}

// update returns the whole state as it is now.
func (c *client) update() agency.WrapperUpdate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.wrapper.out.last.Load(); last != 0 {
		at := time.Unix(0, last).UTC()
		c.state.Output = &at
	}
	if last := c.wrapper.out.progress.last.Load(); last != 0 {
		at := time.Unix(0, last).UTC()
		c.state.Changed = &at
	}
	c.state.LogLost = c.wrapper.out.lost.Load()
	return c.state
}

// lookouts are the pending requests to the daemon for a look at the terminal, by the id of the
// input.
type lookouts struct {
	mu      sync.Mutex
	waiting map[uint64]chan message
}

// ask is a look by the daemon. Without an answer, nothing may be typed.
func (l *lookouts) ask(ctx context.Context, wire *wire, id uint64, next agency.Typing) (unsent bool, err error) {
	answer := make(chan message, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.waiting = map[uint64]chan message{}
	}
	l.waiting[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}()
	unseen := agency.Errorf(agency.CodeInputRefused, "the daemon did not look at the terminal, so the wrapper types nothing into it")
	if wire.send(message{Kind: kindLook, ID: id, Entering: next.Enter, Text: next.Last, Moved: next.Moved}) != nil {
		return false, unseen
	}
	select {
	case m := <-answer:
		return m.Unsent, m.Error.err()
	case <-time.After(lookLimit):
		return false, unseen
	case <-ctx.Done():
		return false, unseen
	}
}

// answer passes on the daemon's answer to a request; a late answer is dropped.
func (l *lookouts) answer(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting := l.waiting[m.ID]; waiting != nil {
		select {
		case waiting <- m:
		default:
		}
	}
}

// answer does what the daemon requests; look asks it to look at the terminal.
func (c *client) answer(m message, look lookFunc) message {
	reply := message{Kind: kindAnswer, ID: m.ID}
	switch m.Kind {
	case kindInput:
		delivery := agency.Delivery{Effect: agency.EffectNone}
		t, err := c.wrapper.awaitTerminal()
		if err == nil {
			delivery, err = t.input(m.Text, look)
		}
		reply.Delivery, reply.Error = &delivery, toWire(err)
	case kindKeys:
		t, err := c.wrapper.awaitTerminal()
		if err == nil {
			err = t.press(m.Text, look)
		}
		reply.Error = toWire(err)
	case kindSay:
		delivery := agency.Delivery{Effect: agency.EffectNone}
		s, err := c.wrapper.awaitSpeech(agency.CodeInputRefused)
		if err == nil {
			delivery, err = s.say(m.Say)
		}
		reply.Delivery, reply.Error = &delivery, toWire(err)
	case kindEnviron:
		var err error
		reply.Environ, err = c.environ()
		reply.Error = toWire(err)
	case kindDoor:
		_, err := c.wrapper.awaitSpeech(agency.CodeInvalidState)
		if err == nil {
			reply.Door, err = c.wrapper.doors.open()
		}
		reply.Error = toWire(err)
	case kindAllow:
		reply.Error = toWire(c.wrapper.network.allow(m.Hosts))
	case kindStop:
		if m.By == "" {
			m.By = agency.EndedByStop
		}
		c.wrapper.requestStop(m.By, m.Force)
	}
	return reply
}

// environLimit is the largest environment that is sent, in bytes: even with every byte escaped it
// fits into a message.
const environLimit = lineLimit / 7

// environ returns the environment of the runner, or the one outside its sandbox if it has a sandbox,
// without the token.
func (c *client) environ() (agency.Environ, error) {
	size, env := 0, c.launch.Env
	switch {
	case c.launch.Outer != nil:
		env = c.launch.Outer
	case c.launch.Relay != "": // the environment in the sandbox names another configuration
		return nil, agency.Errorf(agency.CodeInvalidState, "the wrapper of %s was replaced, and does not know the environment outside the sandbox", c.launch.RunID).
			WithHint("start it again: agency resume --restart %s", c.launch.RunID)
	}
	env = env.Without("AGENCY_TOKEN")
	for _, kv := range env {
		size += len(kv)
	}
	if size > environLimit {
		return nil, agency.Errorf(agency.CodeInvalidState, "the environment of %s has %d bytes, more than %d", c.launch.RunID, size, environLimit).
			WithHint("start it with a smaller environment")
	}
	return env, nil
}
