package notify_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agency/internal/notify"
)

// A failure is described in words for users, with no part of the URL beyond its host.
func TestWords(t *testing.T) {
	t.Parallel()
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer plain.Close()
	vast := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 11<<20)) }))
	defer vast.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	hook := func(url string, private bool) error {
		return notify.NewWebhook("hook", url, nil, private, time.Now).Send(t.Context(), fullNotice())
	}
	program := func(argv ...string) error {
		return notify.NewCommand("tell", argv).Send(t.Context(), fullNotice())
	}
	at := strings.TrimPrefix(plain.URL, "http://")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{hook("http://"+unused+"/TOKEN", true), "nothing listens at " + unused},
		{hook(plain.URL+"/TOKEN", true), "the receiver closed the connection without an answer"},
		{hook(vast.URL, true), "the receiver gave an answer that is not HTTP, or too large"},
		{hook(strings.Replace(plain.URL, "http:", "https:", 1), true), "the receiver does not speak https"},
		{hook(secure.URL, true), "the certificate of the receiver is not signed by an authority that this machine trusts"},
		{hook(plain.URL, false), at + " is not an address of the internet, and allow_private is not set"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "hooks.example", IsNotFound: true}}, "the name hooks.example is not known"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "hooks.example"}}, "the name hooks.example could not be looked up"},
		{context.DeadlineExceeded, "the receiver did not answer in time"},
		{program("/nonexistent/program"), "/nonexistent/program cannot be started: no such file or directory"},
		{program("no-such-program-at-all"), "there is no program no-such-program-at-all on the PATH of the daemon"},
		{program("sh", "-c", "echo busy >&2; exit 7"), "exit status 7: busy"},
		{errors.New("the answer was 502"), "the answer was 502"},
	} {
		if got := notify.Words(tt.err); got != tt.want {
			t.Errorf("got %q for %v, want %q", got, tt.err, tt.want)
		}
	}
}
