package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"agency"
	"agency/internal/api"
)

// A stream of events continues at the next daemon: no event is lost and none comes twice, even one
// that was cut off in the middle.
func TestFollowAgain(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		since, _ := strconv.Atoi(r.URL.Query().Get("since"))
		for seq := since + 1; seq <= since+3; seq++ {
			_, _ = fmt.Fprintf(w, "id: %d\ndata: {\"seq\":%d,\"data\":{}}\n\n", seq, seq)
		}
		_, _ = fmt.Fprintf(w, "data: {\"seq\":%d,", since+4)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	c := api.NewClient(path, "1", func(context.Context) error { return nil })
	t.Cleanup(c.Close)
	enough := errors.New("enough")
	next, again := int64(1), 0
	err := c.Follow(t.Context(), 0, "", func() { again++ }, func(e agency.Event) error {
		if e.Seq != next {
			t.Errorf("event %d came as number %d", e.Seq, next)
		}
		if next++; next > 100 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || again != 33 {
		t.Errorf("ended with %v, after %d daemons", err, again)
	}
}

// A client does not wait for a daemon that was never there. A client that has met a daemon does not
// replace one of another version.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	broken := agency.Errorf(agency.CodeDaemonStartFailed, "no room")
	c := api.NewClient(socketPath(t), "1", func(context.Context) error { return broken })
	if err := c.Follow(t.Context(), 0, "", func() {}, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	path := socketPath(t)
	var asked atomic.Int32
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			_, _ = io.WriteString(w, ": hello\n")
			return
		}
		if r.URL.Path != api.EventsPath {
			t.Errorf("asked for %s", r.URL.Path)
		}
		reply(w, nil, agency.Errorf(agency.CodeDaemonVersion, "another").WithDetail("daemon_version", "2").WithDetail("requests", 0).WithDetail("schema_version", 0))
	}))
	c = api.NewClient(path, "1", func(context.Context) error {
		t.Error("a daemon was started beside the new one")
		return nil
	})
	c.Schema = func() int { return 0 }
	if err := c.Follow(t.Context(), 0, "", func() {}, nil); !agency.IsCode(err, agency.CodeDaemonVersion) {
		t.Errorf("got %v", err)
	}
}

// A log continues with the byte, and in the attempt, at which its daemon went away.
func TestLogsAgain(t *testing.T) {
	t.Parallel()
	const text, begins = "0123456789abcdefghij", 100
	path := socketPath(t)
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := begins
		if at := r.URL.Query().Get("offset"); at != "" {
			from, _ = strconv.Atoi(at)
			if attempt := r.URL.Query().Get("attempt"); attempt != "2" {
				t.Errorf("asked for attempt %s", attempt)
			}
		}
		w.Header().Set(api.LogAttemptHeader, "2")
		w.Header().Set(api.LogOffsetHeader, strconv.Itoa(from))
		rest := text[from-begins:]
		_, _ = io.WriteString(w, rest[:min(len(rest), 3)])
		_ = http.NewResponseController(w).Flush()
		if len(rest) > 3 {
			panic(http.ErrAbortHandler)
		}
	}))
	c := api.NewClient(path, "1", func(context.Context) error { return nil })
	t.Cleanup(c.Close)
	log, err := c.Logs(t.Context(), api.LogsRequest{Run: "fix", SinceMS: 5, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if got, err := io.ReadAll(log); string(got) != text || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// A part of a name that means one run today may mean two when the next daemon is asked.
func TestStreamsStayWithTheirRun(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	var asked atomic.Int32
	serve(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "fix-"
		if asked.Add(1) > 1 {
			want = "r_1"
		}
		if got := r.URL.Query().Get("run"); got != want {
			t.Errorf("%s asked for %q, want %q", r.URL.Path, got, want)
		}
		w.Header().Set(api.StreamRunHeader, "r_1")
		w.Header().Set(api.LogOffsetHeader, "0")
		_, _ = io.WriteString(w, "data: {\"seq\":1,\"data\":{}}\n\n")
		_ = http.NewResponseController(w).Flush()
		if want == "fix-" {
			panic(http.ErrAbortHandler)
		}
	}))
	c := api.NewClient(path, "1", func(context.Context) error { return nil })
	t.Cleanup(c.Close)
	enough := errors.New("enough")
	err := c.Follow(t.Context(), 0, "fix-", func() {}, func(agency.Event) error {
		if asked.Load() > 1 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	asked.Store(0)
	log, err := c.Logs(t.Context(), api.LogsRequest{Run: "fix-", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if _, err := io.ReadAll(log); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// A client that follows a stream first checks whether the daemon was asked to stop, and then waits.
func TestFollowAwaitsNext(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	begin := func() *httptest.Server {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: {\"seq\":1,\"data\":{}}\n\n")
		}))
		_ = s.Listener.Close()
		s.Listener = listener
		s.Start()
		t.Cleanup(s.Close)
		return s
	}
	var started, awaited int
	server := begin()
	c := api.NewClient(path, "1", func(context.Context) error { started++; return nil })
	t.Cleanup(c.Close)
	c.AwaitNext = func(context.Context) error { awaited++; begin(); return nil }
	enough := errors.New("enough")
	err := c.Follow(t.Context(), 0, "", func() {}, func(agency.Event) error {
		if awaited > 0 {
			return enough
		}
		server.Close()
		return nil
	})
	if !errors.Is(err, enough) || awaited != 1 || started != 1 {
		t.Errorf("got %v, awaited %d, started %d", err, awaited, started)
	}
}
