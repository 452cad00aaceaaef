package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"agency"
	"agency/internal/protocol"
)

// Limits of guests.
const (
	mostGuests   = 8
	mostPending  = 256              // requests of a guest without a reply
	guestFrame   = lineLimit        // bytes of a frame of a guest
	guestBehind  = 4 << 20          // bytes that wait for a guest; one with more must leave
	guestWrite   = 30 * time.Second // for a guest to take a frame
	guestNoInput = 5 * time.Millisecond
)

// guest is the agent's own terminal, as one more client of the agent: its frames go to the runner with
// those of agency, and the runner's messages go to it too. It blocks neither agency nor the runner: a guest
// that is too slow must leave.
type guest struct {
	conn *websocket.Conn
	name string        // begins the ids of its requests
	wake chan struct{} // holds a token when queue has something
	gone chan struct{} // closed when it has left

	// The rest is under the lock of the speech.
	said    int
	pending map[string]waiting // requests, by their ids at the program
	asked   map[string]bool    // requests of the program that it has, by their numbers
	joined  bool               // it gets the messages of the runner
	queue   [][]byte
	behind  int // bytes that wait for it
	left    bool
}

// waiting is a request of a guest without a reply.
type waiting struct {
	request json.RawMessage // its id at the guest
	joins   bool
}

// host speaks with a guest until it leaves.
func (s *speech) host(conn *websocket.Conn) {
	g := &guest{
		conn: conn, name: "guest-" + uuid.NewString()[:8], wake: make(chan struct{}, 1), gone: make(chan struct{}),
		pending: map[string]waiting{}, asked: map[string]bool{},
	}
	conn.SetReadLimit(guestFrame)
	s.mu.Lock()
	full := len(s.guests) == mostGuests
	if !full {
		s.guests = append(s.guests, g)
	}
	s.mu.Unlock()
	if full {
		_ = conn.Close(websocket.StatusTryAgainLater, fmt.Sprintf("%d terminals have joined already", mostGuests))
		return
	}
	go s.writeTo(g)
	err := s.readFrom(g)
	s.mu.Lock()
	g.leave()
	s.guests = slices.DeleteFunc(s.guests, func(other *guest) bool { return other == g })
	s.mu.Unlock()
	if err != nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "agency does not understand this terminal")
	}
	_ = conn.CloseNow()
}

// leave ends a guest. The caller holds the lock of the speech.
func (g *guest) leave() {
	if !g.left {
		g.left, g.queue = true, nil
		close(g.gone)
	}
}

// readFrom takes what a guest says until it leaves. It returns an error for a guest that must leave.
func (s *speech) readFrom(g *guest) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-g.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		kind, frame, err := g.conn.Read(ctx)
		switch {
		case err != nil:
			return nil //nolint:nilerr // it left, or this end closed the connection
		case kind != websocket.MessageText:
			return errors.New("a frame that is not text")
		}
		for begin := time.Now(); ; {
			passed, err := s.passOn(g, frame, time.Since(begin) > roomLimit)
			if err != nil {
				return err
			}
			if passed {
				break
			}
			select { // without the lock, so that others get it
			case <-time.After(guestNoInput):
			case <-g.gone:
				return nil
			}
		}
	}
}

// passOn gives a frame of a guest to the runner. It returns false while the runner has no room for it; with
// last, it refuses the frame instead.
func (s *speech) passOn(g *guest, frame []byte, last bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.left {
		return true, nil
	}
	g.said++
	f, err := s.talk.Guest(fmt.Sprintf("%s-%d", g.name, g.said), frame)
	refuse := func(why string) {
		if f.Request != nil {
			g.give(s.talk.Guests().Refuse(f.Request, why))
		}
	}
	switch {
	case err != nil:
		return false, err
	case f.Reply != nil:
		g.give(f.Reply)
		return true, nil
	case f.Saying.Kind == "" || f.Answers != "" && !g.asked[f.Answers]:
		return true, nil
	case f.Request != nil && len(g.pending) == mostPending:
		refuse("too many requests wait for replies")
		return true, nil
	case len(f.Frame) >= pipeSize(s.input):
		refuse("the message is larger than what the agent can be given at once")
		return true, nil
	case s.room(len(f.Frame)+1, 0) != nil:
		if last {
			refuse("the agent does not read its input")
		}
		return last, nil
	}
	if err := s.utter(f.Saying, f.Frame); err != nil {
		refuse(agency.AsError(err).Message)
		return true, nil
	}
	if f.Request != nil {
		g.pending[f.Saying.ID] = waiting{f.Request, f.Joins}
	}
	return true, nil
}

// tell passes a line of the runner on to the guests that it is for. The caller holds the lock.
func (s *speech) tell(line []byte) {
	if len(s.guests) == 0 {
		return
	}
	speaks := s.talk.Guests()
	if line == nil {
		s.tooLong(speaks)
		return
	}
	audience := speaks.Audience(line)
	if audience.Replies != "" {
		for _, g := range s.guests {
			if w, ok := g.pending[audience.Replies]; ok {
				delete(g.pending, audience.Replies)
				if w.joins { // the reply has the conversation so far, and the open requests come again
					g.joined, g.asked = true, map[string]bool{}
				}
				g.give(speaks.Reply(line, w.request))
			}
		}
		return
	}
	if audience.Private {
		return
	}
	line = slices.Clone(line)
	for _, g := range s.guests {
		switch {
		case !g.joined || audience.Asks != "" && g.asked[audience.Asks]:
			continue
		case audience.Asks != "":
			if len(g.asked) == mostPending {
				continue // agency answers that request
			}
			g.asked[audience.Asks] = true
		}
		delete(g.asked, audience.Over)
		g.give(line)
	}
}

// tooLong refuses the requests to which a line that was too long may be the reply: those of guests to join,
// since that reply holds the whole conversation. The caller holds the lock.
func (s *speech) tooLong(speaks *protocol.Guests) {
	for _, g := range s.guests {
		for id, w := range g.pending {
			if w.joins {
				delete(g.pending, id)
				g.give(speaks.Refuse(w.request, "the conversation is too long for a terminal to join it: agency attach shows it"))
			}
		}
	}
}

// give queues a frame for a guest; a guest that is too far behind must leave. The caller holds the lock of
// the speech, and does not change the frame afterwards.
func (g *guest) give(frame []byte) {
	switch {
	case g.left:
		return
	case g.behind > guestBehind:
		g.leave()
		return
	}
	g.queue = append(g.queue, frame)
	g.behind += len(frame)
	wake(g.wake)
}

// writeTo gives a guest what is queued for it, until it leaves.
func (s *speech) writeTo(g *guest) {
	for {
		select {
		case <-g.wake:
		case <-g.gone:
			return
		}
		s.mu.Lock()
		frames := g.queue
		g.queue = nil
		s.mu.Unlock()
		for _, frame := range frames {
			ctx, cancel := context.WithTimeout(context.Background(), guestWrite)
			err := g.conn.Write(ctx, websocket.MessageText, frame)
			cancel()
			s.mu.Lock()
			g.behind -= len(frame)
			if err != nil {
				g.leave()
			}
			left := g.left
			s.mu.Unlock()
			if left {
				return
			}
		}
	}
}
