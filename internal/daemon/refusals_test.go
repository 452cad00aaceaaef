package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A refused wrapper connects again, many times a second: the log does not grow with that.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log, now := slog.New(slog.NewTextHandler(&text, nil)), time.Now()
	var r refusals
	for range 1000 {
		r.warn(log, now, "refuse wrapper", "err", "no such run")
	}
	r.warn(log, now.Add(refusalEvery), "refuse wrapper", "err", "no such run")
	if got := strings.Count(text.String(), "refuse wrapper"); got != 2 || !strings.Contains(text.String(), "not_logged=999") {
		t.Errorf("%d lines: %s", got, text.String())
	}
}

// A client that sends its body slowly is disconnected; one that has sent it may wait for its
// answer.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	read := make(chan error, 1)
	server := httptest.NewServer(inTime(limit, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		taken(w)
		if r.URL.Path == "/long" {
			select {
			case <-time.After(3 * limit):
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
		read <- err
	})))
	t.Cleanup(server.Close)
	for path, sent := range map[string]string{"/slow": "{", "/long": "{}"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: agency\r\nContent-Length: 2\r\n\r\n"+sent); err != nil {
			t.Fatal(err)
		}
		err = <-read
		var timeout net.Error
		if slow := errors.As(err, &timeout) && timeout.Timeout(); slow != (sent == "{") || !slow && err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
