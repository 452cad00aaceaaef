package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/api"
)

// pipes is a listener whose connections follow the time of a synctest bubble, unlike those of a
// socket.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// bubble returns a client of a handler that keeps accepting requests, in a time of their own.
func bubble(t *testing.T, handler http.HandlerFunc, start func(context.Context) error) *api.Client {
	t.Helper()
	return silentBubble(t, living(handler), start)
}

// silentBubble returns a client of a handler that also decides whether it accepts requests.
func silentBubble(t *testing.T, handler http.Handler, start func(context.Context) error) *api.Client {
	t.Helper()
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server notices that the client disconnected only once the request is read.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(p)
	}()
	c := api.NewClient("pipes", "1", start)
	c.DialWith(p.dial)
	t.Cleanup(func() {
		c.Close()
		_ = server.Close()
		<-done
	})
	return c
}

// A wait of ten seconds takes ten seconds, however many daemons go away meanwhile.
func TestWaitsKeepTheirTime(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *api.Client) error{
		"timeout_ms of run.wait": func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.WaitRuns, api.WaitRunsRequest{Runs: []string{"r_1"}, For: []string{}, TimeoutMS: 10_000})
			return err
		},
		"timeout_ms of session.wait": func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.WaitSession, api.WaitSessionRequest{Session: "s", TimeoutMS: 10_000})
			return err
		},
		"wait_ms of message.poll": func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.PollMessages, api.PollMessagesRequest{WaitMS: 10_000})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var limits []float64
				c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
					var req map[string]any
					if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
						t.Error(err)
					}
					limit, _ := req[name[:len(name)-len(" of "+r.URL.Path[len("/v1/"):])]].(float64)
					if limits = append(limits, limit); limit == 1 {
						reply(w, map[string]any{}, nil)
						return
					}
					time.Sleep(4 * time.Second)
					panic(http.ErrAbortHandler) // killed
				}, func(context.Context) error { return nil })
				if err := call(t.Context(), c); err != nil {
					t.Error(err)
				}
				if want := []float64{10_000, 6_000, 1_980, 1}; !slices.Equal(limits, want) {
					t.Errorf("asked for %v ms, want %v", limits, want)
				}
			})
		})
	}
}

// A wait without a limit has none at the next daemon either.
func TestWaitsWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); string(body) != `{"runs":["r_1"]}` {
				t.Errorf("asked for %s", body)
			}
			if asked++; asked == 1 {
				time.Sleep(time.Hour)
				panic(http.ErrAbortHandler)
			}
			reply(w, api.WaitRunsResponse{}, nil)
		}, func(context.Context) error { return nil })
		if _, err := api.Call(t.Context(), c, api.WaitRuns, api.WaitRunsRequest{Runs: []string{"r_1"}, For: []string{}}); err != nil || asked != 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// A daemon that another process is starting listens before it answers.
func TestCallWaitsForAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ready, starts := make(chan struct{}), 0
		time.AfterFunc(50*time.Second, func() { close(ready) })
		c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-ready:
				reply(w, api.DaemonStatusResponse{PID: 7}, nil)
			case <-r.Context().Done():
			}
		}, func(context.Context) error {
			starts++
			<-ready
			return nil
		})
		if got, err := status(t.Context(), c); err != nil || got.PID != 7 || starts != 1 {
			t.Errorf("got %+v, %v after %d starts", got, err, starts)
		}
	})
}

// A client reports a daemon that hangs within a minute. A client that has met it before knows that
// it is not starting.
func TestCallOfADaemonThatHangs(t *testing.T) {
	t.Parallel()
	for name, met := range map[string]bool{"never met": false, "met": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hangs, starts := !met, 0
				c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
					if hangs {
						<-r.Context().Done()
						return
					}
					reply(w, api.DaemonStatusResponse{PID: 7}, nil)
				}, func(context.Context) error { starts++; return nil })
				if met {
					if _, err := status(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					hangs = true
				}
				began := time.Now()
				_, err := status(t.Context(), c)
				if !errors.Is(err, api.ErrSilent) || !agency.IsCode(err, agency.CodeDaemonConnectFailed) || met == (starts > 0) {
					t.Errorf("got %v after %d starts", err, starts)
				}
				if passed := time.Since(began); passed > time.Minute {
					t.Errorf("it took %s", passed)
				}
			})
		})
	}
}

// Daemons that go away do not shorten a wait while it has time. A wait without a limit gives up
// after minutes in which daemons only go away.
func TestCallsOutliveDaemons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call func(context.Context, *api.Client) error
		life time.Duration // of each daemon
		dies int           // daemons before one that answers
		took time.Duration // at most
		fine bool
	}{
		"wait, and each lives for a while": {waitFor(0), 12 * time.Second, 100, time.Hour, true},
		"wait, and each dies at once":      {waitFor(0), 0, 1 << 30, 11 * time.Minute, false},
		"wait for an hour":                 {waitFor(time.Hour), 0, 1000, 40 * time.Minute, true},
		"wait for a second":                {waitFor(time.Second), 0, 1000, 3 * time.Second, false},
		"ls":                               {listRuns, 0, 1 << 30, 65 * time.Second, false},
		"ls, twenty-five times":            {listRuns, 0, 25, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				died := 0
				c := bubble(t, func(w http.ResponseWriter, _ *http.Request) {
					if died++; died <= tt.dies {
						time.Sleep(tt.life)
						panic(http.ErrAbortHandler)
					}
					reply(w, map[string]any{}, nil)
				}, func(context.Context) error { return nil })
				began := time.Now()
				err := tt.call(t.Context(), c)
				if (err == nil) != tt.fine || time.Since(began) > tt.took || err != nil && agency.AsError(err).Code.Exit() != agency.ExitUnknown {
					t.Errorf("got %v after %s", err, time.Since(began))
				}
			})
		})
	}
}

func waitFor(timeout time.Duration) func(context.Context, *api.Client) error {
	return func(ctx context.Context, c *api.Client) error {
		_, err := api.Call(ctx, c, api.WaitRuns, api.WaitRunsRequest{Runs: []string{"r_1"}, For: []string{}, TimeoutMS: timeout.Milliseconds()})
		return err
	}
}

func listRuns(ctx context.Context, c *api.Client) error {
	_, err := api.Call(ctx, c, api.ListRuns, api.ListRunsRequest{})
	return err
}

// A client reports a suspended daemon when the time in the error is over, and how to wake it up.
func TestCallOfASuspendedDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubble(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(context.Context) error { return nil })
		c.Holder = func() (api.Holder, error) {
			return api.Holder{PID: 7, Doing: api.DoingServe, Locked: true, Suspended: true}, nil
		}
		began := time.Now()
		err := agency.AsError(listRuns(t.Context(), c))
		took := time.Since(began)
		if !strings.Contains(err.Message, "has not answered for "+took.String()+"; it is process 7, which is suspended") || !strings.Contains(err.Hint, "kill -CONT 7") {
			t.Errorf("after %s: %v (%s)", took, err, err.Hint)
		}
	})
}

// Checks may run for as long as their own limits allow.
func TestVerifyForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(25 * time.Hour):
				reply(w, map[string]any{}, nil)
			case <-r.Context().Done():
			}
		}, nil)
		if _, err := api.Call(t.Context(), c, api.VerifyRun, api.VerifyRunRequest{Run: "r_1"}); err != nil {
			t.Error(err)
		}
	})
}

// An operation that has git look at files may take minutes.
func TestCallOfGit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubble(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(4 * time.Minute):
				reply(w, map[string]any{}, nil)
			case <-r.Context().Done():
			}
		}, nil)
		for name, call := range map[string]func() error{
			"run.show":      func() error { _, err := api.Call(t.Context(), c, api.ShowRun, api.RunRequest{}); return err },
			"run.diff":      func() error { _, err := api.Call(t.Context(), c, api.DiffRun, api.DiffRunRequest{}); return err },
			"snapshot.show": func() error { _, err := api.Call(t.Context(), c, api.ShowSnapshot, api.SnapshotRequest{}); return err },
			"trust.show":    func() error { _, err := api.Call(t.Context(), c, api.ShowTrust, api.TrustRequest{}); return err },
			"session.plan": func() error {
				_, err := api.Call(t.Context(), c, api.PlanSession, api.PlanSessionRequest{})
				return err
			},
		} {
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
