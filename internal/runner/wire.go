package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"agency"
)

// Limits of a line.
const (
	lineLimit  = 1 << 20
	helloLimit = 64 << 10
)

// sendLimit is how long a peer may take to read before the connection counts as dead.
const sendLimit = 5 * time.Second

// protocolVersion is the version of the messages. A wrapper of version 1 types without requesting a
// look, one of version 2 speaks no protocol of an agent, and one of version 3 takes no guests.
const protocolVersion = 4

// Kinds of messages. An unknown kind is ignored: the peer is newer.
const (
	kindHello   = "hello"   // from the wrapper, first
	kindUpdate  = "update"  // from the wrapper; answered by ack
	kindAnswer  = "answer"  // from the wrapper, to input and stop
	kindWelcome = "welcome" // from the daemon, to hello
	kindRefused = "refused" // from the daemon: do not reconnect
	kindAck     = "ack"
	kindInput   = "input"
	kindKeys    = "keys"
	kindStop    = "stop"
	kindLook    = "look"    // from the wrapper, before it types for the input or keys of that ID; answered by looked
	kindLooked  = "looked"  // from the daemon; an error keeps the wrapper from typing
	kindGo      = "go"      // from the daemon: the runner may start
	kindEnviron = "environ" // from the daemon; answered by answer
	kindSay     = "say"     // from the daemon: say something in the agent's protocol; answered by answer
	kindAllow   = "allow"   // from the daemon: more hosts for the runner; answered by answer
	kindDoor    = "door"    // from the daemon: open a door for a guest; answered by answer
)

// message is one line in either direction.
type message struct {
	Kind     string                `json:"kind"`
	ID       uint64                `json:"id,omitempty"` // of the message that is answered or acknowledged
	Hello    *agency.WrapperHello  `json:"hello,omitempty"`
	Update   *agency.WrapperUpdate `json:"update,omitempty"`
	Text     string                `json:"text,omitempty"` // of a look: what was typed last
	By       agency.EndedBy        `json:"by,omitempty"`
	Tmux     string                `json:"tmux,omitempty"`     // of a welcome: the socket of the tmux server
	Entering bool                  `json:"entering,omitempty"` // of a look: Enter is next, after a text
	Moved    bool                  `json:"moved,omitempty"`    // of a look: a key since then may have sent or cleared Text
	Unsent   bool                  `json:"unsent,omitempty"`   // of looked: the text to be typed is there already
	Force    bool                  `json:"force,omitempty"`    // of a stop; an older wrapper forces at every second stop
	Delivery *agency.Delivery      `json:"delivery,omitempty"`
	Say      *agency.Saying        `json:"say,omitempty"`
	Environ  agency.Environ        `json:"environ,omitempty"` // of an answer
	Hosts    []string              `json:"hosts,omitempty"`   // of allow
	Door     *agency.Door          `json:"door,omitempty"`    // of an answer
	Error    *wireError            `json:"error,omitempty"`
}

// wireError is the form of an error in a message.
type wireError struct {
	Code    agency.Code `json:"code"`
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
}

func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	e := agency.AsError(err)
	return &wireError{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

func (e *wireError) err() error {
	if e == nil {
		return nil
	}
	return &agency.Error{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

// wire is a connection with one message per line. Any number of goroutines may send, one may
// receive.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	line []byte
	mu   sync.Mutex // held while sending
}

func (w *wire) send(m message) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return fmt.Errorf("encode message %s: %w", m.Kind, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return fmt.Errorf("send message %s: %w", m.Kind, err)
	}
	if _, err := w.conn.Write(line.Bytes()); err != nil {
		return fmt.Errorf("send message %s: %w", m.Kind, err)
	}
	return nil
}

// receive reads the next message. The error is io.EOF when the connection ends between two lines.
func (w *wire) receive(limit int) (message, error) {
	line, err := w.readLine(limit)
	if err != nil {
		return message{}, err
	}
	return parseMessage(line)
}

// readLine reads one line without its end. It is valid until the next call.
func (w *wire) readLine(limit int) ([]byte, error) {
	w.line = w.line[:0]
	for {
		part, err := w.in.ReadSlice('\n')
		w.line = append(w.line, part...)
		switch {
		case len(w.line) > limit:
			return nil, fmt.Errorf("receive message: a line is longer than %d bytes", limit)
		case err == nil:
			return w.line[:len(w.line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(w.line) > 0:
			return nil, fmt.Errorf("receive message: %w", io.ErrUnexpectedEOF)
		default:
			return nil, err
		}
	}
}

// parseMessage parses a line. It ignores unknown keys, which come from a newer peer.
func parseMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("receive message: %w", err)
	}
	return m, nil
}
