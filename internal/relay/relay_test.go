package relay_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/relay"
)

// world is a sandbox with a relay, and what the daemon outside was asked.
type world struct {
	inside  http.Client
	daemon  *http.Server
	asked   []*http.Request
	answers http.HandlerFunc
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agr") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{answers: func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "{}") }}
	w.daemon = &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked = append(w.asked, r)
		w.answers(rw, r)
	})}
	outside, inside := filepath.Join(dir, "daemon"), filepath.Join(dir, "inside")
	daemon, agent := listen(t, outside), listen(t, inside)
	go func() { _ = w.daemon.Serve(daemon) }()
	t.Cleanup(func() { _ = w.daemon.Close() })
	go relay.New(&agency.Launch{RunID: "r_1", Attempt: 2, Token: "secret", Socket: outside}).Serve(agent)
	w.inside.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", inside)
	}}
	t.Cleanup(w.inside.CloseIdleConnections)
	return w
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// ask sends a request from the sandbox, and returns the error of the answer.
func (w *world) ask(t *testing.T, method, path string, header http.Header) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://agency"+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	answer, err := w.inside.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var envelope api.Envelope
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Err()
}

// A request is that of the run, whatever it says.
func TestRelaySender(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forged := http.Header{
		api.RunHeader: {"r_other"}, api.AttemptHeader: {"9"}, api.TokenHeader: {"theirs"}, api.VersionHeader: {"v1"}, "X-Other": {"x"},
		"Connection": {"Upgrade, Agency-Run, Agency-Inside"}, "Upgrade": {"agency-wrapper"}, api.InsideHeader: {""},
	}
	if err := w.ask(t, http.MethodPost, "/v1/run.list", forged); err != nil {
		t.Fatal(err)
	}
	got := w.asked[0].Header
	for name, want := range map[string]string{
		api.RunHeader: "r_1", api.AttemptHeader: "2", api.TokenHeader: "secret", api.InsideHeader: "1", api.VersionHeader: "v1",
		"X-Other": "", "Upgrade": "", "X-Forwarded-For": "",
	} {
		if values := got.Values(name); strings.Join(values, " ") != want {
			t.Errorf("%s: %q, not %q", name, values, want)
		}
	}
}

// What is not on the list does not reach the daemon.
func TestRelayRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, request := range []string{
		"POST /v1/daemon.stop", "POST /v1/run.attach", "POST /v1/session.start", "POST /v1/run.explode", "POST /v1/", "POST /", "GET /v1/wrapper",
		"GET /v1/events", "GET /v1/run.list", "PUT /v1/run.list", "CONNECT /v1/run.list", "POST //v1/run.list", "POST /v1/run.list/../daemon.stop",
		"POST /v1/run.list%2f..%2fdaemon.stop", "POST /v1/alive", "POST /v1/logs",
	} {
		method, path, _ := strings.Cut(request, " ")
		if err := w.ask(t, method, path, http.Header{}); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: %v", request, err)
		}
	}
	if len(w.asked) > 0 {
		t.Errorf("the daemon was asked for %s", w.asked[0].URL)
	}
}

// A request that is too long, or does not say how long it is, does not reach the daemon.
func TestRelayBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, body := range map[string]io.Reader{"long": strings.NewReader(strings.Repeat(" ", 1<<20+1)), "of unknown length": io.MultiReader(strings.NewReader("{}"))} {
		answer, err := w.inside.Post("http://agency/v1/run.create", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != agency.CodeUsage.HTTPStatus() {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	if len(w.asked) > 0 {
		t.Errorf("the daemon was asked for %s", w.asked[0].URL)
	}
}

// A daemon that goes away in an answer may have done what was asked, and one that is not there has
// not.
func TestRelayWithoutDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	if err := w.ask(t, http.MethodPost, "/v1/run.stop", http.Header{}); !agency.IsCode(err, agency.CodeDaemonLost) {
		t.Errorf("lost: %v", err)
	}
	if err := w.daemon.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.ask(t, http.MethodPost, "/v1/run.stop", http.Header{}); !agency.IsCode(err, agency.CodeDaemonConnectFailed) {
		t.Errorf("gone: %v", err)
	}
}
