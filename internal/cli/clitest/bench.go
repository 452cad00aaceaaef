package clitest

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

	"agency"
	"agency/internal/api"
	"agency/internal/cli"
	"agency/internal/config"
)

// Bench is a command line with everything around it.
type Bench struct {
	t       *testing.T
	App     *cli.App
	Out     bytes.Buffer
	Err     bytes.Buffer
	Home    string   // home and data root
	Spawned int      // daemons that were requested
	Config  string   // the configuration file for the last of them
	Environ []string // its environment
}

// New makes a command line whose daemon does not run and cannot be started.
func New(t *testing.T) *Bench {
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
	b := &Bench{t: t, Home: home}
	b.App = &cli.App{
		Version: "v1.2.3", In: in, Out: &b.Out, Err: &b.Err, Dir: home, Now: time.Now,
		Env: []string{"HOME=" + home, "AGENCY_HOME=" + home},
		SpawnDaemon: func(_ context.Context, _ *config.Config, path string, env []string) error {
			b.Config, b.Environ = path, env
			b.Spawned++
			return agency.Errorf(agency.CodeDaemonStartFailed, "no daemon here")
		},
		RunDaemon:       func(context.Context, *config.Config, func() (*config.Config, error)) error { return ErrBoom },
		DaemonHolder:    func(string) (api.Holder, error) { return api.Holder{}, nil },
		DaemonLog:       func(home string) string { return filepath.Join(home, "nowhere.log") },
		RestoreDatabase: func(context.Context, string, string) (string, error) { return "", ErrBoom },
		RebuildDatabase: func(context.Context, string) (*api.Rebuilt, error) { return nil, ErrBoom },
		Exec:            func([]string, []string) error { return ErrBoom },
	}
	return b
}

// ErrBoom is the error of the parts that only main provides.
var ErrBoom = errors.New("boom")

// Run runs one command and returns its exit status.
func (b *Bench) Run(args ...string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	b.Out.Reset()
	b.Err.Reset()
	return b.App.Main(ctx, args)
}

// Envelope returns the one envelope on standard output. It fails the test when the output is
// anything else.
func (b *Bench) Envelope() api.Envelope {
	b.t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b.Out.Bytes()))
	dec.DisallowUnknownFields()
	var e api.Envelope
	if err := dec.Decode(&e); err != nil {
		b.t.Fatalf("%v in %q (standard error: %q)", err, b.Out.String(), b.Err.String())
	}
	if _, err := dec.Token(); err != io.EOF {
		b.t.Errorf("more than one document: %q", b.Out.String())
	}
	if e.SchemaVersion != api.SchemaVersion || e.OK == (e.Error != nil) {
		b.t.Errorf("got %+v", e)
	}
	return e
}

// Daemon is a fake daemon: its answers to operations, and the requests that it got.
type Daemon struct {
	answer func(op string, body []byte) (any, error)

	mu    sync.Mutex
	Asked []string // operations, in order
	Last  []byte   // the body of the last request
}

// ServeHTTP implements http.Handler.
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == api.AlivePath {
		_ = api.Encode(w, api.Success(api.Empty{}))
		return
	}
	op := strings.TrimPrefix(r.URL.Path, "/v1/")
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.Asked, d.Last = append(d.Asked, op), body
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

// Serve starts a daemon for the bench.
func (b *Bench) Serve(answer func(op string, body []byte) (any, error)) *Daemon {
	b.t.Helper()
	d := &Daemon{answer: answer}
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "unix", filepath.Join(b.Home, "agencyd.sock"))
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

// Always returns an answer that is the same for all operations. A client that waits for runs finds
// them first.
func Always(data any, err error) func(string, []byte) (any, error) {
	_, wait := data.(api.WaitRunsResponse)
	return func(op string, _ []byte) (any, error) {
		if wait && op == api.ListRuns.Name {
			return api.ListRunsResponse{Runs: []api.Run{SomeRun("x", agency.Working, "")}}, err
		}
		return data, err
	}
}

// SomeRun returns a live run of a shell.
func SomeRun(name string, label agency.Label, summary string) api.Run {
	return api.Run{
		ID: "r_01", Handle: "1122-fix-login-a1b2", Name: name, Status: label, Summary: summary, State: agency.Running, Attempt: 1,
		Runner: "shell", RunnerKind: agency.Shell, Branch: "agency/1122-fix-login-a1b2", Tags: []string{"worker"},
	}
}
