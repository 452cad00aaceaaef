package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
)

// socketPath returns a path that is short enough for a socket, wherever the temporary folder is.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// serve answers on a socket until the test ends.
func serve(t *testing.T, path string, handler http.Handler) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: living(handler), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

// living returns a handler that also answers that the daemon accepts requests.
func living(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == api.AlivePath {
			reply(w, api.Empty{}, nil)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// reply writes an envelope as the daemon does.
func reply(w http.ResponseWriter, data any, err error) {
	env, code := api.Success(data), http.StatusOK
	if err != nil {
		env, code = api.Failure(err), agency.AsError(err).Code.HTTPStatus()
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(env)
}

func status(ctx context.Context, c *api.Client) (api.DaemonStatusResponse, error) {
	return api.Call(ctx, c, api.DaemonStatus, api.Empty{})
}

func TestCall(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get(api.VersionHeader) != "1.2" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("asked with %s %v", r.Method, r.Header)
		}
		switch r.URL.Path {
		case "/v1/run.send":
			if string(body) != `{"run":"fix","text":"yes"}` {
				t.Errorf("asked for %s", body)
			}
			reply(w, api.SendInputResponse{RunID: "r_1", Delivered: true}, nil)
		default:
			reply(w, nil, agency.Errorf(agency.CodeRunNotFound, "no run is called %q", "fix").WithHint("agency ls").WithDetail("ref", "fix"))
		}
	}))
	c := api.NewClient(path, "1.2", nil)
	got, err := api.Call(t.Context(), c, api.SendInput, api.SendInputRequest{Run: "fix", Text: "yes"})
	if err != nil || got.RunID != "r_1" || !got.Delivered {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = api.Call(t.Context(), c, api.StopRun, api.RunRequest{Run: "fix"})
	e := agency.AsError(err)
	if e == nil || e.Code != agency.CodeRunNotFound || e.Message != `no run is called "fix"` || e.Hint != "agency ls" || e.Details["ref"] != "fix" {
		t.Errorf("got %+v", e)
	}
}

func TestCallWithoutDaemon(t *testing.T) {
	t.Parallel()
	refused := socketPath(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: refused})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	_ = listener.Close()
	closed := socketPath(t)
	if listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: closed}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for name, tt := range map[string]struct {
		path string
		code agency.Code
		text string
	}{
		"no socket":           {socketPath(t), agency.CodeDaemonConnectFailed, "no daemon listens on "},
		"no daemon listens":   {refused, agency.CodeDaemonConnectFailed, "no daemon listens on "},
		"it hangs up":         {closed, agency.CodeDaemonLost, "went away before it answered"},
		"a path too long":     {"/" + strings.Repeat("a", 200), agency.CodeDaemonConnectFailed, "cannot be reached: "},
		"a folder, no socket": {filepath.Dir(socketPath(t)), agency.CodeDaemonConnectFailed, "no daemon listens on "},
	} {
		_, err := status(t.Context(), api.NewClient(tt.path, "1", nil))
		e := agency.AsError(err)
		if !agency.IsCode(err, tt.code) || !strings.Contains(e.Message, tt.text) || e.Hint == "" || strings.Contains(e.Message, "http://") {
			t.Errorf("%s: %v (%s)", name, err, e.Hint)
		}
	}
}

// A request that may have been carried out is not sent again; one that only reads is.
func TestCallAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		call func(context.Context, *api.Client) error
		want int32
	}{
		{"run.create", func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.CreateRun, api.CreateRunRequest{})
			return err
		}, 1},
		{"run.list", func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.ListRuns, api.ListRunsRequest{})
			return err
		}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := socketPath(t)
			var asked atomic.Int32
			serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) < 3 {
					panic(http.ErrAbortHandler) // the daemon is killed in the middle of it
				}
				reply(w, api.ListRunsResponse{}, nil)
			}))
			c := api.NewClient(path, "1", func(context.Context) error { return nil })
			t.Cleanup(c.Close)
			if err := tt.call(t.Context(), c); agency.IsCode(err, agency.CodeDaemonLost) == (tt.want > 1) {
				t.Errorf("got %v", err)
			}
			if got := asked.Load(); got != tt.want {
				t.Errorf("asked %d times, want %d", got, tt.want)
			}
		})
	}
}

func TestCallWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may do everything")
	}
	path := socketPath(t)
	serve(t, path, http.NotFoundHandler())
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := status(t.Context(), api.NewClient(path, "1", nil)); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("got %v", err)
	}
}

func TestCallGarbage(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":               "",
		"text":                  "404 page not found\n",
		"half an envelope":      `{"ok":true,"sch`,
		"an unknown key":        `{"ok":true,"schema_version":1,"data":{},"more":1}`,
		"no data":               `{"ok":true,"schema_version":1}`,
		"data of another shape": `{"ok":true,"schema_version":1,"data":{"pid":"1"}}`,
		"data with more in it":  `{"ok":true,"schema_version":1,"data":{"pid":1,"mood":"good"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := socketPath(t)
			serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
			_, err := status(t.Context(), api.NewClient(path, "1", nil))
			if !agency.IsCode(err, agency.CodeDaemonLost) || !strings.Contains(err.Error(), "the daemon's answer cannot be read") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCallStartsADaemon(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	starts := 0
	c := api.NewClient(path, "1", func(context.Context) error {
		starts++
		serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, api.DaemonStatusResponse{PID: 7}, nil) }))
		return nil
	})
	for range 2 {
		if got, err := status(t.Context(), c); err != nil || got.PID != 7 {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if starts != 1 {
		t.Errorf("%d daemons were started", starts)
	}
}

// A daemon that cannot start is not started again; one that is killed while it starts is.
func TestCallStartsInVain(t *testing.T) {
	t.Parallel()
	starts := 0
	c := api.NewClient(socketPath(t), "1", func(context.Context) error {
		starts++
		return agency.Errorf(agency.CodeDaemonStartFailed, "no room")
	})
	if _, err := status(t.Context(), c); !agency.IsCode(err, agency.CodeDaemonStartFailed) || starts != 1 {
		t.Errorf("got %v after %d starts", err, starts)
	}

	path, starts := socketPath(t), 0
	c = api.NewClient(path, "1", func(context.Context) error {
		if starts++; starts < 4 {
			return agency.Errorf(agency.CodeDaemonStartFailed, "it %w", api.ErrStartKilled)
		}
		serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, api.DaemonStatusResponse{PID: 7}, nil) }))
		return nil
	})
	t.Cleanup(c.Close)
	if _, err := api.Call(t.Context(), c, api.CreateRun, api.CreateRunRequest{}); agency.IsCode(err, agency.CodeDaemonStartFailed) || starts != 4 {
		t.Errorf("got %v after %d starts", err, starts)
	}
}

// A daemon that is about to stop still accepts a connection: it loses the request, answers when
// Start looks, and is gone for the next request, which goes to the next daemon.
func TestCallMeetsAStoppingDaemon(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{true, false} {
		path := socketPath(t)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			go func() {
				if conn, err := listener.Accept(); err == nil {
					_ = conn.Close()
				}
			}()
		} else {
			_ = listener.Close()
		}
		starts := 0
		c := api.NewClient(path, "1", func(context.Context) error {
			if starts++; starts == 1 {
				_ = listener.Close()
				return nil
			}
			serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, api.DaemonStatusResponse{PID: 7}, nil) }))
			return nil
		})
		if got, err := status(t.Context(), c); err != nil || got.PID != 7 || starts != 2 {
			t.Errorf("got %+v, %v after %d starts", got, err, starts)
		}
	}
}

// versioned is a daemon that can be of another version: it refuses requests, and stops for a client
// of its own version.
type versioned struct {
	version  string
	requests int
	schema   int
	stops    atomic.Int32
}

func (d *versioned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := d.version
	if d.stops.Load() > 0 {
		version = "new"
	}
	switch theirs := r.Header.Get(api.VersionHeader); {
	case theirs != version:
		reply(w, nil, agency.Errorf(agency.CodeDaemonVersion, "the daemon is version %s and this program is %s", version, theirs).
			WithDetail("daemon_version", version).WithDetail("requests", d.requests).WithDetail("schema_version", d.schema))
	case r.URL.Path == "/v1/"+api.StopDaemon.Name:
		d.stops.Add(1)
		reply(w, api.DaemonStatusResponse{PID: 1 << 30}, nil) // a pid that no process has
	default:
		reply(w, api.DaemonStatusResponse{Version: version}, nil)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		requests      int
		schema        int
		stops, starts int32
		code          agency.Code
	}{
		{"an older daemon is replaced", 0, 4, 1, 1, ""},
		{"a newer daemon with a record that this program can read is replaced", 0, 5, 1, 1, ""},
		{"a daemon with requests is left alone", 2, 5, 0, 0, agency.CodeDaemonVersion},
		{"a daemon with a newer record is left alone", 0, 6, 0, 0, agency.CodeDaemonVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := socketPath(t)
			d := &versioned{version: "old", requests: tt.requests, schema: tt.schema}
			serve(t, path, d)
			var starts atomic.Int32
			c := api.NewClient(path, "new", func(context.Context) error {
				if d.stops.Load() != 1 {
					t.Error("a daemon was started beside the old one")
				}
				starts.Add(1)
				return nil
			})
			c.Schema = func() int { return 5 }
			got, err := status(t.Context(), c)
			if (err == nil) != (tt.code == "") || (err != nil && !agency.IsCode(err, tt.code)) || (err == nil && got.Version != "new") {
				t.Errorf("got %+v, %v", got, err)
			}
			if d.stops.Load() != tt.stops || starts.Load() != tt.starts {
				t.Errorf("%d stops and %d starts", d.stops.Load(), starts.Load())
			}
		})
	}
}

// A client whose daemon was replaced asks again with the shape of the operation. It starts and
// stops no daemon, and ends with one sentence where the new one cannot serve it.
func TestOutlived(t *testing.T) {
	t.Parallel()
	path, understood := socketPath(t), api.Shape("/v1/"+api.DaemonStatus.Name)
	var upgraded atomic.Bool
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if upgraded.Load() && r.Header.Get(api.ShapeHeader) != understood {
			reply(w, nil, agency.Errorf(agency.CodeDaemonVersion, "another").WithDetail("daemon_version", "2").WithDetail("requests", 0).WithDetail("schema_version", 0))
			return
		}
		reply(w, api.DaemonStatusResponse{PID: 7}, nil)
	}))
	c := api.NewClient(path, "1", func(context.Context) error {
		t.Error("a daemon was started beside the new one")
		return nil
	})
	t.Cleanup(c.Close)
	c.Schema = func() int { return 0 }
	for range 2 {
		if got, err := status(t.Context(), c); err != nil || got.PID != 7 {
			t.Errorf("got %+v, %v", got, err)
		}
		upgraded.Store(true)
	}
	_, err := api.Call(t.Context(), c, api.ListAlerts, api.ListAlertsRequest{})
	if !agency.IsCode(err, agency.CodeDaemonVersion) || err.Error() != "the daemon is now version 2, and this command is version 1, which cannot read its answers" {
		t.Errorf("got %v", err)
	}
}

// A client that waited when its daemon was replaced, and got no answer, does not stop the new
// daemon.
func TestOutlivedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	path, understood := socketPath(t), api.Shape("/v1/"+api.DaemonStatus.Name)
	var asked atomic.Int32
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case asked.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/v1/"+api.StopDaemon.Name:
			t.Error("the new daemon was stopped")
		case r.Header.Get(api.ShapeHeader) != understood:
			reply(w, nil, agency.Errorf(agency.CodeDaemonVersion, "another").WithDetail("daemon_version", "2").WithDetail("requests", 0).WithDetail("schema_version", 0))
			return
		}
		reply(w, api.DaemonStatusResponse{PID: 7}, nil)
	}))
	c := api.NewClient(path, "1", func(context.Context) error { return nil })
	t.Cleanup(c.Close)
	c.Schema = func() int { return 0 }
	if got, err := status(t.Context(), c); err != nil || got.PID != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// No two operations have the same shape but those that ask and answer the same.
func TestShape(t *testing.T) {
	t.Parallel()
	if a, b := api.Shape("/v1/"+api.ListRuns.Name), api.Shape("/v1/"+api.ListAlerts.Name); a == "" || a == b || api.Shape("/v1/none") != "" {
		t.Errorf("the shapes are %q and %q", a, b)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	asked := make(chan struct{})
	serve(t, path, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		// The server notices that the client disconnected only once the request is read.
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := status(ctx, api.NewClient(path, "1", func(context.Context) error {
		t.Error("a daemon was started for a caller that left")
		return nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	large := strings.Repeat("a", 1<<20)
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != api.EventsPath || r.URL.RawQuery != "run=fix+1&since=7" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, ": a comment\n\n")
		for seq, text := range []string{"small", large, "data: {}"} {
			data, _ := json.Marshal(agency.Event{Seq: int64(8 + seq), Type: agency.RunStep, Data: json.RawMessage(fmt.Sprintf("{%q:1}", text))})
			_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", 8+seq, agency.RunStep, data)
		}
	}))
	sizes, next := []int{}, int64(8)
	err := api.NewClient(path, "1", nil).Follow(t.Context(), 7, "fix 1", func() {}, func(e agency.Event) error {
		if e.Seq != next || e.Type != agency.RunStep {
			t.Errorf("event %d is %+v", next, e)
		}
		next++
		sizes = append(sizes, len(e.Data))
		return nil
	})
	if !agency.IsCode(err, agency.CodeDaemonLost) {
		t.Errorf("ended with %v", err)
	}
	if fmt.Sprint(sizes) != fmt.Sprint([]int{11, len(large) + 6, 14}) {
		t.Errorf("the events have %d bytes", sizes)
	}
}

func TestEventsEnd(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("run") {
		case "unknown":
			reply(w, nil, agency.Errorf(agency.CodeRunNotFound, "no run"))
		case "garbage":
			_, _ = io.WriteString(w, "data: {\n\n")
		default:
			out := bufio.NewWriter(w)
			_, _ = out.WriteString("data: {\"seq\":1,\"data\":{}}\n\n")
			_ = out.Flush()
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	c := api.NewClient(path, "1", nil)
	ignore := func(agency.Event) error { return nil }
	if err := c.Follow(t.Context(), 0, "unknown", func() {}, ignore); !agency.IsCode(err, agency.CodeRunNotFound) {
		t.Errorf("of an unknown run: %v", err)
	}
	if err := c.Follow(t.Context(), 0, "garbage", func() {}, ignore); !agency.IsCode(err, agency.CodeDaemonConnectFailed) {
		t.Errorf("of garbage: %v", err)
	}
	enough := errors.New("enough")
	if err := c.Follow(t.Context(), 0, "", func() {}, func(agency.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ended by its reader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Follow(ctx, 0, "", func() {}, func(agency.Event) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended by its context: %v", err)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	const text = "one\n\x1b[31mtwo\xff\x00"
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("run") == "unknown" {
			reply(w, nil, agency.Errorf(agency.CodeRunNotFound, "no run"))
			return
		}
		if got, want := r.URL.RawQuery, "attempt=2&follow=true&run=fix&since=5&stream=stderr"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		_, _ = io.WriteString(w, text)
	}))
	c := api.NewClient(path, "1", nil)
	log, err := c.Logs(t.Context(), api.LogsRequest{Run: "fix", Stream: "stderr", Attempt: 2, SinceMS: 5, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if got, err := io.ReadAll(log); string(got) != text || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := c.Logs(t.Context(), api.LogsRequest{Run: "unknown"}); !agency.IsCode(err, agency.CodeRunNotFound) {
		t.Errorf("of an unknown run: %v", err)
	}
}

// Two clients find an old daemon, and one is too late to stop it.
func TestVersionReplacedByAnotherClient(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	d := &versioned{version: "old"}
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.ServeHTTP(w, r)
		d.stops.Store(1) // by the first one
	}))
	c := api.NewClient(path, "new", func(context.Context) error { return nil })
	c.Schema = func() int { return 0 }
	t.Cleanup(c.Close)
	if got, err := status(t.Context(), c); err != nil || got.Version != "new" {
		t.Errorf("got %+v, %v", got, err)
	}
}
