package daemon_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/daemon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = "test-1"

// running is a daemon in this process.
type running struct {
	done chan struct{} // closed at its end
	err  error         // how it ended
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(time.Minute):
		t.Fatal("the daemon does not end")
		return nil
	}
}

// start runs a daemon until the test ends. When it returns, the daemon is ready or has ended.
func start(t *testing.T, home string, env ...string) (*config.Config, *running) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	cfg, err := config.Load("", append([]string{"AGENCY_HOME=" + home, "HOME=" + home}, env...))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tmux.Socket = filepath.Join(home, "tmux")
	d := &daemon.Daemon{Config: cfg, Version: version, Exec: "/nonexistent/agency", Log: slog.New(slog.DiscardHandler), Now: time.Now}
	ctx, cancel := context.WithCancel(t.Context())
	ready, r := make(chan struct{}), &running{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = d.Run(ctx, func() { close(ready) })
	}()
	t.Cleanup(func() { cancel(); <-r.done })
	select {
	case <-ready:
	case <-r.done:
	}
	return cfg, r
}

// shortHome returns a data root whose socket path is short enough.
func shortHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func client(t *testing.T, cfg *config.Config, version string, start func(context.Context) error) *api.Client {
	t.Helper()
	c := api.NewClient(cfg.Socket, version, start)
	t.Cleanup(c.Close)
	return c
}

// A daemon starts and stops any number of times, and leaves no socket, lock or goroutine.
func TestStartStop(t *testing.T) {
	home := shortHome(t)
	for range 5 {
		cfg, ended := start(t, home)
		c := client(t, cfg, version, nil)
		if _, err := api.Call(t.Context(), c, api.StopDaemon, api.Empty{}); err != nil {
			t.Fatal(err)
		}
		if err := ended.wait(t); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(cfg.Socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	}
}

// A second daemon for the same data root is refused, and the first one continues.
func TestOneDaemon(t *testing.T) {
	home := shortHome(t)
	cfg, _ := start(t, home)
	_, ended := start(t, home)
	if err := ended.wait(t); !agency.IsCode(err, agency.CodeDaemonStartFailed) {
		t.Errorf("second daemon: %v", err)
	}
	if _, err := api.Call(t.Context(), client(t, cfg, version, nil), api.DaemonStatus, api.Empty{}); err != nil {
		t.Errorf("first daemon: %v", err)
	}
}

// An idle daemon of another version is stopped, so that the client can start its own.
func TestVersionMismatch(t *testing.T) {
	cfg, ended := start(t, shortHome(t))
	free := errors.New("the place is free")
	c := client(t, cfg, "test-2", func(context.Context) error {
		if err := ended.wait(t); err != nil {
			return err
		}
		return free
	})
	c.Schema = daemon.SchemaVersion
	if _, err := api.Call(t.Context(), c, api.DaemonStatus, api.Empty{}); !errors.Is(err, free) {
		t.Error(err)
	}
}

// Invalid requests are refused with a message, and the daemon continues.
func TestBadRequests(t *testing.T) {
	cfg, _ := start(t, shortHome(t))
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", cfg.Socket)
		},
	}}
	tests := []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"unknown key", "POST", "/v1/run.list", `{"dri": "/"}`, 400, `unknown key \"dri\"; did you mean \"dir\"?`},
		{"not JSON", "POST", "/v1/run.list", `{`, 400, "ends too early"},
		{"two documents", "POST", "/v1/run.list", `{}{}`, 400, "more text after"},
		{"no such operation", "POST", "/v1/nonsense", `{}`, 400, "there is no POST /v1/nonsense"},
		{"method", "GET", "/v1/run.list", ``, 400, "there is no GET /v1/run.list"},
		{"no upgrade", "GET", "/v1/wrapper", ``, 400, "wants Upgrade"},
		{"bad since", "GET", "/v1/events?since=x", ``, 400, `since is \"x\", not a whole number from 0`},
		{"unknown key of a query", "GET", "/v1/logs?run=x&folow=true", ``, 400, `unknown key \"folow\"; known are run, stream,`},
		{"bad stream", "GET", "/v1/logs?run=x&stream=y", ``, 400, "none of runner, stdout, stderr"},
		{"unknown run", "POST", "/v1/run.show", `{"run": "unknown"}`, 404, "E_RUN_NOT_FOUND"},
		{"age too long", "POST", "/v1/session.remove", `{"older_than_ms": 10000000000000, "apply": true}`, 400, "older_than_ms is 10000000000000, not a number of milliseconds"},
		{"negative age", "POST", "/v1/session.remove", `{"older_than_ms": -1}`, 400, "older_than_ms is -1, not a number of milliseconds"},
		{"gc, age too long", "POST", "/v1/gc", `{"older_than_ms": 9223372036855}`, 400, "not a number of milliseconds from 0 to 9223372036854"},
		{"gc, negative age", "POST", "/v1/gc", `{"older_than_ms": -1, "apply": true}`, 400, "not a number of milliseconds"},
		{"wait too long", "POST", "/v1/run.wait", `{"runs": [], "timeout_ms": 10000000000000}`, 400, "timeout_ms is 10000000000000, not"},
		{"negative wait", "POST", "/v1/session.wait", `{"session": "x", "timeout_ms": -1}`, 400, "timeout_ms is -1, not"},
		{"poll too long", "POST", "/v1/message.poll", `{"wait_ms": 10000000000000}`, 400, "wait_ms is 10000000000000, not"},
		{"negative poll", "POST", "/v1/message.poll", `{"wait_ms": -1}`, 400, "wait_ms is -1, not"},
		{"not a repository", "POST", "/v1/run.list", `{"dir": "/"}`, 400, "E_NOT_GIT_REPO"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://agency"+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.code || !strings.Contains(string(body), tt.want) || !strings.Contains(string(body), `"ok":false`) {
				t.Errorf("got %d %s, want %d and %q", resp.StatusCode, body, tt.code, tt.want)
			}
		})
	}
}

// The event stream continues after the number that the client saw last, without a gap, and ends
// with the daemon.
func TestEventStream(t *testing.T) {
	cfg, ended := start(t, shortHome(t))
	c := client(t, cfg, version, nil)
	seen := make(chan agency.Event, 10)
	streamed := make(chan error, 1)
	go func() {
		streamed <- c.Follow(t.Context(), 0, "", func() {}, func(e agency.Event) error { seen <- e; return nil })
	}()
	if e := <-seen; e.Type != agency.DaemonStarted || e.Seq != 1 {
		t.Errorf("first event: %+v", e)
	}
	if _, err := api.Call(t.Context(), c, api.StopDaemon, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := <-streamed; !agency.IsCode(err, agency.CodeDaemonLost) {
		t.Errorf("the stream ended with %v", err)
	}
	if err := ended.wait(t); err != nil {
		t.Error(err)
	}
}

// A data root that cannot be used is refused with its path.
func TestBadHome(t *testing.T) {
	file := filepath.Join(shortHome(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, ended := start(t, filepath.Join(file, "data"))
	if err := ended.wait(t); !agency.IsCode(err, agency.CodeDaemonStartFailed) || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

// A follower that has seen more than the record holds, because it was restored, gets new events.
func TestEventStreamOfARestoredRecord(t *testing.T) {
	cfg, _ := start(t, shortHome(t))
	c := client(t, cfg, version, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	enough := errors.New("enough")
	sent := make(chan error, 1)
	go func() {
		// Repeat it: the stream may begin after some of the events.
		for ctx.Err() == nil {
			_, err := api.Call(ctx, c, api.SendMessage, api.SendMessageRequest{Type: "message", To: agency.Target{User: true}, Payload: []byte(`{}`)})
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	err := c.Follow(ctx, 1_000_000, "", func() {}, func(e agency.Event) error {
		if e.Seq >= 1_000_000 {
			t.Errorf("event %d", e.Seq)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("ended with %v", err)
	}
	cancel()
	if err := <-sent; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
