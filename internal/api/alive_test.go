package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/api"
)

// suspended returns a client of a daemon that accepts requests for the given time and then is
// suspended. asked counts the requests to do something.
func suspended(t *testing.T, after time.Duration) (c *api.Client, asked *atomic.Int32) {
	t.Helper()
	began := time.Now()
	asked = &atomic.Int32{}
	c = silentBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if time.Since(began) >= after {
			<-r.Context().Done()
			return
		}
		if r.URL.Path == api.AlivePath {
			reply(w, api.Empty{}, nil)
			return
		}
		asked.Add(1)
		if r.Method == http.MethodGet { // a stream
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}), func(context.Context) error { return errors.New("there is a daemon") })
	c.Holder = func() (api.Holder, error) {
		return api.Holder{PID: 7, Doing: api.DoingServe, Locked: true, Suspended: true}, nil
	}
	return c, asked
}

// A client that waits learns in time that the daemon no longer answers, which process it is, and
// whether any request was sent, however long the operation may take.
func TestSuspendedDaemon(t *testing.T) {
	t.Parallel()
	stop := func(ctx context.Context, c *api.Client) error {
		_, err := api.Call(ctx, c, api.StopRun, api.RunRequest{Run: "r_1"})
		return err
	}
	for name, tt := range map[string]struct {
		call  func(context.Context, *api.Client) error
		after time.Duration
		asked int32
		says  string
	}{
		"an act that was not asked for": {stop, 0, 0, "which is suspended; nothing was asked of it"},
		"an act that is under way":      {stop, 10 * time.Minute, 1, "which is suspended; the request may be done already, or be done"},
		"a wait":                        {waitFor(0), time.Hour, 1, "which is suspended"},
		"a wait with a limit":           {waitFor(time.Hour), 0, 0, "which is suspended"},
		"what git looks at": {func(ctx context.Context, c *api.Client) error {
			_, err := api.Call(ctx, c, api.DiffRun, api.DiffRunRequest{})
			return err
		}, time.Minute, 1, "which is suspended"},
		"events": {func(ctx context.Context, c *api.Client) error {
			return c.Follow(ctx, 0, "", func() {}, func(agency.Event) error { return nil })
		}, time.Hour, 1, "which is suspended"},
		"events that do not begin": {func(ctx context.Context, c *api.Client) error {
			return c.Follow(ctx, 0, "", func() {}, func(agency.Event) error { return nil })
		}, 0, 0, "which is suspended"},
		"a log": {func(ctx context.Context, c *api.Client) error {
			log, err := c.Logs(ctx, api.LogsRequest{Follow: true})
			if err != nil {
				return err
			}
			defer func() { _ = log.Close() }()
			_, err = io.Copy(io.Discard, log)
			return err
		}, time.Hour, 1, "which is suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, asked := suspended(t, tt.after)
				began := time.Now()
				err := tt.call(t.Context(), c)
				took, e := time.Since(began)-tt.after, agency.AsError(err)
				if !errors.Is(err, api.ErrSilent) || e.Code.Exit() != agency.ExitUnknown || asked.Load() != tt.asked {
					t.Fatalf("asked %d times: %v", asked.Load(), err)
				}
				if took < 10*time.Second || took > 20*time.Second || !strings.Contains(e.Message, "has not answered for 15s; it is process 7, "+tt.says) || !strings.Contains(e.Hint, "kill -CONT 7") {
					t.Errorf("after %s: %s (%s)", took, e.Message, e.Hint)
				}
			})
		})
	}
}

// A client waits for a daemon that is suspended for a short time, however often that happens.
func TestShortInactivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := silentBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != api.AlivePath {
				time.Sleep(10 * time.Minute)
				reply(w, api.RunResponse{}, nil)
				return
			}
			if at := time.Since(began) % (30 * time.Second); at < 12*time.Second && time.Since(began) > 15*time.Second {
				select {
				case <-time.After(12*time.Second - at):
				case <-r.Context().Done():
				}
			}
			reply(w, api.Empty{}, nil)
		}), nil)
		if _, err := api.Call(t.Context(), c, api.StopRun, api.RunRequest{}); err != nil {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Lines that were sent to a suspended daemon may have been applied.
func TestSuspendedUpdates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := silentBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == api.AlivePath {
				<-r.Context().Done()
				return
			}
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", api.UpdatesProtocol)
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, conn)
		}), nil)
		stream, err := c.Updates(t.Context(), api.SessionRequest{Session: "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		began := time.Now()
		_, err = stream.Receive()
		if took := time.Since(began); !errors.Is(err, api.ErrSilent) || !agency.IsCode(err, agency.CodeDaemonLost) || took > 20*time.Second {
			t.Error(fmt.Errorf("after %s: %w", took, err))
		}
	})
}
