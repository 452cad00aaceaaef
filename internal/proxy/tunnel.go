package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/host"
)

// tunnel answers CONNECT.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	h, name, _, err := p.admit(r.Host)
	if err != nil {
		fail(w, err)
		return
	}
	server, err := p.dial(r.Context(), r.Host)
	if err != nil {
		fail(w, err)
		return
	}
	defer func() { _ = server.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		fail(w, errors.New("agency: the connection cannot be taken over"))
		return
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		fail(w, err)
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if h.Port == 0 {
		from, err := p.checkName(client, buffered.Reader, r.Host, name)
		if err == nil {
			join(client, from, server)
		}
		return
	}
	// The protocol of a port that the user named is not known, and its server may speak first.
	join(client, &checked{open: func() (io.Reader, error) { return p.checkNamed(client, buffered.Reader, r.Host, name) }}, server)
}

// checkName returns all that a client sends in a tunnel if it is TLS for the name of the tunnel: one address
// may serve many names.
func (p *Proxy) checkName(client net.Conn, in *bufio.Reader, address, name string) (io.Reader, error) {
	_ = client.SetReadDeadline(time.Now().Add(headerTime))
	defer func() { _ = client.SetReadDeadline(time.Time{}) }()
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] != handshake {
		return nil, p.refuse(address, address, "what it was sent is not TLS")
	}
	var seen bytes.Buffer
	hello := &replay{from: io.TeeReader(in, &seen)}
	asked, err := serverName(hello)
	if err != nil {
		return nil, p.refuse(address, "", "what it was sent is not a greeting of TLS")
	}
	if _, err := netip.ParseAddr(name); asked != name && (err != nil || asked != "") {
		return nil, p.refuse(address, "", "the name in TLS is %q", shown(asked))
	}
	return io.MultiReader(&seen, in), nil
}

// checkNamed is checkName for a port that the user named. There the client need not use TLS.
func (p *Proxy) checkNamed(client net.Conn, in *bufio.Reader, address, name string) (io.Reader, error) {
	if first, err := in.Peek(1); err != nil || first[0] != handshake {
		return in, err
	}
	return p.checkName(client, in, address, name)
}

// handshake is the first byte of TLS.
const handshake = 22

// serverName returns the name in the greeting of a TLS client; empty when it has none.
func serverName(conn net.Conn) (string, error) {
	var name string
	var known bool
	_ = tls.Server(conn, &tls.Config{ //nolint:gosec // the greeting is only read, and the server decides
		MinVersion: tls.VersionTLS10,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, known = hello.ServerName, true
			return nil, io.EOF
		},
	}).HandshakeContext(context.Background())
	if !known {
		return "", errors.New("no greeting")
	}
	return name, nil
}

// replay is a connection that can only be read.
type replay struct {
	net.Conn

	from io.Reader
}

func (r *replay) Read(b []byte) (int, error)       { return r.from.Read(b) }
func (r *replay) Write(b []byte) (int, error)      { return len(b), nil }
func (r *replay) Close() error                     { return nil }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// checked is a reader that is opened, with a check, when it is first read.
type checked struct {
	open func() (io.Reader, error)
	from io.Reader
}

func (c *checked) Read(b []byte) (n int, err error) {
	if c.from == nil {
		if c.from, err = c.open(); err != nil {
			return 0, err
		}
	}
	return c.from.Read(b)
}

// forward connects each connection of a listener to a host on this machine. While the wrapper is out of open
// files or memory, connections wait.
func forward(l net.Listener, to host.Host) error {
	for {
		client, err := l.Accept()
		switch {
		case agency.Exhausted(err):
			time.Sleep(acceptPause)
			continue
		case err != nil:
			return err
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := (&net.Dialer{Timeout: dialTime}).DialContext(context.Background(), "tcp", net.JoinHostPort(to.Name, strconv.Itoa(to.Port)))
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			join(client, client, server)
		}()
	}
}

// join copies in both directions until both have ended, one has failed, or no data came for idleTime. It
// reads from the reader what the client sends.
func join(client net.Conn, from io.Reader, server net.Conn) {
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	copyAll := func(to, source net.Conn, from io.Reader) {
		buf := make([]byte, 32<<10)
		for {
			_ = source.SetReadDeadline(time.Now().Add(idleTime))
			n, err := from.Read(buf)
			if n > 0 {
				last.Store(time.Now().UnixNano())
				if _, err := to.Write(buf[:n]); err != nil {
					break
				}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, last.Load())) < idleTime {
				continue
			}
			if errors.Is(err, io.EOF) {
				if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
					return
				}
			}
			if err != nil {
				break
			}
		}
		_, _ = client.Close(), server.Close()
	}
	var both sync.WaitGroup
	both.Go(func() { copyAll(client, server, server) })
	copyAll(server, client, from)
	both.Wait()
}
