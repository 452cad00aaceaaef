package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/proxy"
)

// start serves a proxy that reaches the hosts of a list, and returns it with its address.
func start(t *testing.T, hosts ...string) (p *proxy.Proxy, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = proxy.New(hosts, func(bool) {})
	done := make(chan struct{})
	go func() { defer close(done); p.Serve([]net.Listener{l}) }()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return p, l.Addr().String()
}

// through returns a client that uses a proxy, and asks for a name in TLS; empty is that of the URL.
func through(t *testing.T, address, name string) *http.Client {
	t.Helper()
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: address}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: name},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// A client reaches what the list names, by name and port, in plain HTTP and in TLS, and nothing else.
func TestReachesTheListAlone(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "seen as "+r.Host) })
	plain, secret := httptest.NewServer(page), httptest.NewUnstartedServer(page)
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS()
	defer plain.Close()
	defer secret.Close()
	p, address := start(t, "web.localhost:"+port(t, plain), "web.localhost:"+port(t, secret), "localtest.localhost", "*.below.localhost:"+port(t, plain))
	for _, c := range []struct{ url, name, want string }{
		{"http://web.localhost:" + port(t, plain), "", "seen as web.localhost"},
		{"http://WEB.localhost.:" + port(t, plain), "", "seen as"},
		{"https://web.localhost:" + port(t, secret), "", "seen as web.localhost"},
		{"https://web.localhost:" + port(t, secret), "other.localhost", "EOF"},
		{"http://other.localhost:" + port(t, plain), "", "not on the list"},
		{"http://web.localhost:1", "", "not on the list"},
		{"http://127.0.0.1:" + port(t, plain), "", "an address, not a name"},
		{"http://[::ffff:127.0.0.1]:" + port(t, plain), "", "an address, not a name"},
		{"http://2130706433:" + port(t, plain), "", "not on the list"},
		// Without a port, a name must not be of this machine; nor with all names below one.
		{"http://localtest.localhost", "", "which is not a public address"},
		{"https://localtest.localhost", "", "Forbidden"},
		{"http://a.below.localhost:" + port(t, plain), "", "not a public address"},
	} {
		got := ""
		resp, err := through(t, address, c.name).Get(c.url)
		if err != nil {
			got = err.Error()
		} else {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			got = string(body)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s as %q: got %q, want %q", c.url, c.name, got, c.want)
		}
	}
	use := fmt.Sprint(p.Use().Refused)
	for _, want := range []string{`the name in TLS is "other.localhost"`, "other.localhost:" + port(t, plain), "localtest.localhost:80"} {
		if !strings.Contains(use, want) {
			t.Errorf("%s is not among the refusals: %s", want, use)
		}
	}
}

// A refusal has the entry of a list that would allow it, and none when nothing would.
func TestAllowsMore(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "seen as "+r.Host) }))
	defer server.Close()
	p, address := start(t, "localtest.localhost")
	ask := func(url string) string {
		t.Helper()
		resp, err := through(t, address, "").Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	web := "web.localhost:" + port(t, server)
	for _, url := range []string{"http://" + web, "http://a.example", "http://10.0.0.7", "http://localtest.localhost", "http://127.0.0.1:" + port(t, server)} {
		if got := ask(url); !strings.Contains(got, "is refused") {
			t.Errorf("%s: got %q", url, got)
		}
	}
	entries := []string{}
	for _, r := range p.Use().Refused {
		entries = append(entries, r.Entry)
	}
	if want := []string{web, "a.example", "10.0.0.7:80", "localtest.localhost:80", ""}; !slices.Equal(entries, want) {
		t.Errorf("got %q, want %q", entries, want)
	}
	p.Allow([]string{web})
	if got := ask("http://" + web); got != "seen as "+web {
		t.Errorf("got %q", got)
	}
}

// A request is for the host that it was admitted for, whatever its header says.
func TestHeaderDoesNotChooseTheHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "seen as "+r.Host) }))
	defer server.Close()
	_, address := start(t, "web.localhost:"+port(t, server))
	for request, want := range map[string]string{
		"GET http://web.localhost:" + port(t, server) + "/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n":                  "seen as web.localhost",
		"GET / HTTP/1.1\r\nHost: web.localhost:" + port(t, server) + "\r\nConnection: close\r\n\r\n":                                      "400 Bad Request",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: web.localhost:" + port(t, server) + "\r\nConnection: close\r\n\r\n":                  "403 Forbidden",
		"GET http://web.localhost/ HTTP/1.1\r\nHost: web.localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n":                      "431",
		"GET ftp://web.localhost:" + port(t, server) + "/ HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n":                   "400 Bad Request",
		"GET https://web.localhost:" + port(t, server) + "/ HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n":                 "400 Bad Request",
		"CONNECT web.localhost:" + port(t, server) + " HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n": "seen as y",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, request) }()
		got, _ := io.ReadAll(bufio.NewReader(conn)) // a reset after the answer is fine
		_ = conn.Close()
		if !strings.Contains(string(got), want) {
			t.Errorf("%.120q: got %q, want %q", request, got, want)
		}
	}
}

// A proxy that takes the place of another one reaches what that was allowed later, and counts on.
func TestContinues(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	p, address := start(t, "a.example")
	web := "web.localhost:" + port(t, server)
	p.Continue(agency.NetworkUse{Hosts: []string{"a.example", web}, Refused: []agency.Refusal{{Host: "b.example:80", Count: 2}}})
	for url, want := range map[string]int{"http://" + web: http.StatusOK, "http://b.example:80": http.StatusForbidden} {
		resp, err := through(t, address, "").Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: got %s", url, resp.Status)
		}
	}
	if use := p.Use(); !slices.Equal(use.Hosts, []string{"a.example", web}) || len(use.Refused) != 1 || use.Refused[0].Count != 3 {
		t.Errorf("got %v", use)
	}
}

// A proxy whose socket fails says so, and refuses connections.
func TestSaysThatItEnded(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 1)
	p := proxy.New([]string{"a.example"}, func(bool) { changed <- struct{}{} })
	go p.Serve([]net.Listener{failing{}})
	<-changed
	if got := p.Use().Problem; !strings.Contains(got, "agency's proxy ended: no more") {
		t.Errorf("got %q", got)
	}
}

// A host on this machine stays within reach after a moment without open files.
func TestForwardsAfterExhaustion(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	defer server.Close()
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		listeners = append(listeners, l)
	}
	address := listeners[1].Addr().String()
	listeners[1] = &exhausted{Listener: listeners[1]}
	p := proxy.New([]string{"localhost:" + port(t, server)}, func(bool) {})
	go p.Serve(listeners)
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + address)
	if err != nil {
		t.Fatalf("%v, %s", err, p.Use().Problem)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); string(body) != "served" || p.Use().Problem != "" {
		t.Errorf("got %q, %s", body, p.Use().Problem)
	}
}

// exhausted has no open files for its first Accept.
type exhausted struct {
	net.Listener

	tried bool
}

func (l *exhausted) Accept() (net.Conn, error) {
	if !l.tried {
		l.tried = true
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, fmt.Errorf("no more") }
func (failing) Close() error              { return nil }
func (failing) Addr() net.Addr            { return &net.TCPAddr{} }
