package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"agency"
)

// A link connects the carrier of a container, which is outside, with the first program in it. The carrier
// passes the program and the files of the agent: its terminal or pipes are the wrapper's own, and none of
// their data goes through the engine. When one of the two ends, the other ends too.

// start is the first message, to the inside. The files of the agent come with it.
type start struct {
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	Mark     []string `json:"mark"`
	Terminal bool     `json:"terminal"` // the files are a terminal
}

// order is each later message to the inside: a signal, or a port to connect to.
type order struct {
	Signal int    `json:"signal,omitempty"`
	Port   int    `json:"port,omitempty"`
	Of     uint64 `json:"of,omitempty"` // the number of the connection to that port
}

// notice is each message to the outside.
type notice struct {
	Started bool   `json:"started,omitempty"`
	Problem string `json:"problem,omitempty"` // why the agent did not start
	Ended   bool   `json:"ended,omitempty"`
	Code    int    `json:"code"`         // of the agent's exit
	Signal  int    `json:"signal"`       // that ended the agent
	Of      uint64 `json:"of,omitempty"` // the number of a connection, which comes with the message unless no program listens

	// Reached is how often the kernel enforced the limits of the container.
	Reached map[agency.LimitName]int64 `json:"reached,omitempty"`
}

// socketOfLink is the socket in the folder of a link.
const socketOfLink = "link"

// mostMessage is how long a message may be; the environment is in one.
const mostMessage = 16 << 20

// send writes a message, with files.
func send(conn *net.UnixConn, message any, files ...int) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	frame := append([]byte(fmt.Sprintf("%08x", len(data))), data...)
	if len(files) > 0 {
		// receive takes the files with the first byte.
		if _, _, err := conn.WriteMsgUnix(frame[:1], unix.UnixRights(files...), nil); err != nil {
			return err
		}
		frame = frame[1:]
	}
	_, err = conn.Write(frame)
	return err
}

// receive reads a message, and up to four files.
func receive(conn *net.UnixConn, into any) (files []int, err error) {
	head := make([]byte, 8)
	rights := make([]byte, unix.CmsgSpace(4*4))
	n, got, _, _, err := conn.ReadMsgUnix(head[:1], rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if messages, err := unix.ParseSocketControlMessage(rights[:got]); err == nil {
		for i := range messages {
			if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
				files = append(files, fds...)
			}
		}
	}
	for _, fd := range files {
		unix.CloseOnExec(fd)
	}
	if _, err := io.ReadFull(conn, head[1:]); err != nil {
		return files, err
	}
	size, err := strconv.ParseUint(string(head), 16, 32)
	if err != nil || size > mostMessage {
		return files, errors.New("the message has no length")
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(conn, data); err != nil {
		return files, err
	}
	return files, json.Unmarshal(data, into)
}
