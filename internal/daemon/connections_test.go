package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"agency/internal/api"
)

// A process that connects again and again without a request loses its oldest connections. Other
// processes do not notice, and connections in use stay.
func TestIdleConnections(t *testing.T) {
	cfg, _ := start(t, shortHome(t))
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", cfg.Socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	stream := dial()
	if _, err := fmt.Fprintf(stream, "GET %s HTTP/1.1\r\nHost: agency\r\n\r\n", api.EventsPath); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAtLeast(stream, make([]byte, 4096), len("HTTP/1.1 200 OK")); err != nil {
		t.Fatal(err)
	}
	first := dial()
	for range 300 {
		dial()
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest is not closed: %v", err)
	}
	c := client(t, cfg, version, nil)
	if _, err := api.Call(t.Context(), c, api.DaemonStatus, api.Empty{}); err != nil {
		t.Error(err)
	}
	if err := stream.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stream); err == nil {
		t.Error("the stream is closed")
	}
}
