package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agency"
	"agency/internal/api"
	"agency/internal/cli"
	"agency/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a command line with everything around it.
type bench struct {
	t       *testing.T
	app     *cli.App
	out     bytes.Buffer
	err     bytes.Buffer
	home    string
	spawned int      // daemons that were asked for
	config  string   // what the last of them was to read
	environ []string // its environment
}

// newBench makes a command line whose daemon does not run and cannot be started.
func newBench(t *testing.T) *bench {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "agc") // short, because a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	b := &bench{t: t, home: home}
	b.app = &cli.App{
		Version: "v1.2.3", In: in, Out: &b.out, Err: &b.err, Dir: home, Now: time.Now,
		Env: []string{"HOME=" + home, "AGENCY_HOME=" + home},
		SpawnDaemon: func(_ context.Context, _ *config.Config, path string, env []string) error {
			b.config, b.environ = path, env
			b.spawned++
			return agency.Errorf(agency.CodeDaemonStartFailed, "no daemon here")
		},
		RunDaemon:       func(context.Context, *config.Config, func() (*config.Config, error)) error { return errBoom },
		DaemonHolder:    func(string) (api.Holder, error) { return api.Holder{}, nil },
		DaemonLog:       func(home string) string { return filepath.Join(home, "nowhere.log") },
		RestoreDatabase: func(context.Context, string, string) (string, error) { return "", errBoom },
		RebuildDatabase: func(context.Context, string) (*api.Rebuilt, error) { return nil, errBoom },
		Exec:            func([]string, []string) error { return errBoom },
	}
	return b
}

var errBoom = errors.New("boom")

// run runs one command.
func (b *bench) run(args ...string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	b.out.Reset()
	b.err.Reset()
	return b.app.Main(ctx, args)
}

// envelope is the one envelope on standard output; it fails the test when that is not exactly what is there.
func (b *bench) envelope() api.Envelope {
	b.t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b.out.Bytes()))
	dec.DisallowUnknownFields()
	var e api.Envelope
	if err := dec.Decode(&e); err != nil {
		b.t.Fatalf("%v in %q (standard error: %q)", err, b.out.String(), b.err.String())
	}
	if _, err := dec.Token(); err != io.EOF {
		b.t.Errorf("more than one document: %q", b.out.String())
	}
	if e.SchemaVersion != api.SchemaVersion || e.OK == (e.Error != nil) {
		b.t.Errorf("got %+v", e)
	}
	return e
}

// daemon is a fake daemon: what it answers to each operation, and what it was asked.
type daemon struct {
	answer func(op string, body []byte) (any, error)

	mu    sync.Mutex
	asked []string
	last  []byte
}

func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == api.AlivePath {
		_ = api.Encode(w, api.Success(api.Empty{}))
		return
	}
	op := strings.TrimPrefix(r.URL.Path, "/v1/")
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.asked, d.last = append(d.asked, op), body
	d.mu.Unlock()
	data, err := d.answer(op, body)
	if err != nil {
		w.WriteHeader(agency.AsError(err).Code.HTTPStatus())
		_ = api.Encode(w, api.Failure(err))
		return
	}
	switch data := data.(type) {
	case string:
		_, _ = io.WriteString(w, data)
		return
	case http.HandlerFunc:
		data(w, r)
		return
	}
	_ = api.Encode(w, api.Success(data))
}

// serve starts a daemon for the bench.
func (b *bench) serve(answer func(op string, body []byte) (any, error)) *daemon {
	b.t.Helper()
	d := &daemon{answer: answer}
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "unix", filepath.Join(b.home, "agencyd.sock"))
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(d)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	b.t.Cleanup(server.Close)
	return d
}

// always answers the same. Whoever waits for runs finds them first.
func always(data any, err error) func(string, []byte) (any, error) {
	_, wait := data.(api.WaitRunsResponse)
	return func(op string, _ []byte) (any, error) {
		if wait && op == api.ListRuns.Name {
			return api.ListRunsResponse{Runs: []api.Run{someRun("x", agency.Working, "")}}, err
		}
		return data, err
	}
}

func someRun(name string, label agency.Label, summary string) api.Run {
	return api.Run{
		ID: "r_01", Handle: "1122-fix-login-a1b2", Name: name, Status: label, Summary: summary, State: agency.Running, Attempt: 1,
		Runner: "shell", RunnerKind: agency.Shell, Branch: "agency/1122-fix-login-a1b2", Tags: []string{"worker"},
	}
}
