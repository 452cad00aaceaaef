package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"agency/internal/proxy"
)

// proxied is how many bytes are fetched at a time.
const proxied = 256 << 20

// measureProxy fetches the same from a server on this machine, by TLS as agents do, directly and
// through the proxy of the network allow, in turns.
func measureProxy(ctx context.Context, b *bench) error {
	block := make([]byte, 1<<20)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range proxied / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	address := "localhost:" + port
	go proxy.New([]string{address}, func(bool) {}).Serve([]net.Listener{listener})

	through := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	sides := []func(*http.Request) (*url.URL, error){nil, http.ProxyURL(through)}
	took := make([]samples, len(sides))
	for i := range b.reps(8, 3) + 1 {
		for n, proxyOf := range sides {
			d, err := fetch(ctx, "https://"+address, proxyOf)
			if err != nil {
				return err
			}
			if i > 0 { // the first pair warms up
				took[n] = append(took[n], d)
			}
		}
	}
	direct, by := rate(took[0].median()), rate(took[1].median())
	b.table.add(row{
		what: "fetch by TLS through the proxy of the network allow", got: fmt.Sprintf("%.0f MB/s", by),
		beside: fmt.Sprintf("direct: %.0f MB/s", direct), ratio: fmt.Sprintf("%.2fx", by/direct),
	}, by, nil)
	return nil
}

func rate(d time.Duration) float64 { return proxied / 1e6 / d.Seconds() }

// fetch returns how long one answer takes on a connection of its own.
func fetch(ctx context.Context, address string, proxyOf func(*http.Request) (*url.URL, error)) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{
		Proxy: proxyOf, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the server is our own
	}}
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != proxied {
		return 0, fmt.Errorf("fetched %d bytes: %w", n, err)
	}
	return time.Since(began), nil
}
