package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/notify"
)

func fullNotice() *agency.Notice {
	return &agency.Notice{
		ID: "n_1", Kind: "worker.error", Title: "fix-login failed", Body: "exit 1 <b>", RunID: "r_1", RunName: "fix-login", Repo: "/src",
		Tags: []string{"worker"}, Payload: json.RawMessage(`{"attempt":1}`), At: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC),
	}
}

func clock() time.Time { return time.Unix(1_800_000_000, 0) }

func secret() (string, error) { return "s3cret", nil }

// The request contains the notice, and the receiver can verify its sender.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var got agency.Notice
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &got) != nil {
			t.Errorf("%q: %v", body, err)
		}
		mac := hmac.New(sha256.New, []byte("s3cret"))
		_, _ = mac.Write([]byte(r.Header.Get("X-Agency-Timestamp") + "." + string(body)))
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Agency-Signature") != want {
			t.Errorf("signature %q, want %q", r.Header.Get("X-Agency-Signature"), want)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/hook" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("X-Agency-Delivery") != "n_1" || r.Header.Get("X-Agency-Timestamp") != "1800000000" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	hook := notify.NewWebhook("hook", server.URL+"/hook", secret, true, clock)
	if err := hook.Send(t.Context(), fullNotice()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(*fullNotice(), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWebhookFailures(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Agency-Signature") != "" {
			t.Errorf("signed without a secret: %v", r.Header)
		}
		switch r.URL.Path {
		case "/500/TOKEN":
			http.Error(w, "\x1b[31mbad", http.StatusInternalServerError)
		case "/302/TOKEN":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/cut/TOKEN":
			panic(http.ErrAbortHandler)
		case "/there":
			followed.Store(true)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{
		"/500/TOKEN": "the answer was 500", "/302/TOKEN": "the answer was 307, and redirects are not followed", "/cut/TOKEN": "EOF",
	} {
		err := notify.NewWebhook("hook", server.URL+path, nil, true, clock).Send(t.Context(), fullNotice())
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
	asked := func() (string, error) { return "", errors.New("HOOK_SECRET is not set") }
	if err := notify.NewWebhook("hook", server.URL, asked, true, clock).Send(t.Context(), fullNotice()); err == nil || err.Error() != "HOOK_SECRET is not set" {
		t.Errorf("without its secret: %v", err)
	}
	server.Close()
	err := notify.NewWebhook("hook", server.URL+"/TOKEN", nil, true, clock).Send(t.Context(), fullNotice())
	if err == nil || strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("with the receiver gone: %v", err)
	}
}

// The send to a receiver that never answers ends with its context.
func TestWebhookTimeout(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := notify.NewWebhook("hook", server.URL, nil, true, clock).Send(ctx, fullNotice()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Without allow_private no name and no address leads into the machine or its network, and nothing
// is sent there.
func TestWebhookPrivate(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		err := notify.NewWebhook("hook", "https://"+host+":"+port, nil, false, clock).Send(t.Context(), fullNotice())
		if err == nil || !strings.Contains(err.Error(), "not an address of the internet") || !notify.Final(err) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached.Load() {
		t.Error("it was reached")
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		if !notify.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range []string{
		"127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3",
		"224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "203.0.113.5",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1",
	} {
		if notify.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken", a)
		}
	}
}
