package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/git"
	"agency/internal/supervisor"
)

// A wait ends with its daemon, with an error that makes the client ask the next one, at any moment
// of the wait.
func TestWaitsEndWithTheDaemon(t *testing.T) {
	d := &Daemon{Log: slog.New(slog.DiscardHandler), stopping: make(chan struct{})}
	rs, waits := newRequests(d), make(chan struct{})
	handle(rs, api.WaitRuns, func(ctx context.Context, _ api.WaitRunsRequest) (api.WaitRunsResponse, error) {
		ctx, cancel := d.untilStop(ctx)
		defer cancel()
		close(waits)
		<-ctx.Done()
		return api.WaitRunsResponse{}, fmt.Errorf("read runs: %w", ctx.Err())
	})
	go func() {
		<-waits
		close(d.stopping)
	}()
	answer := httptest.NewRecorder()
	rs.mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/"+api.WaitRuns.Name, strings.NewReader(`{}`)))
	var env api.Envelope
	if err := json.NewDecoder(answer.Body).Decode(&env); err != nil {
		t.Fatal(err)
	}
	if err := env.Err(); !agency.IsCode(err, agency.CodeDaemonConnectFailed) {
		t.Errorf("got %v", err)
	}
}

// The daemon serves every operation and every stream of the tables.
func TestEveryOperationIsServed(t *testing.T) {
	t.Parallel()
	mux := (&Daemon{git: &git.Git{}, sup: &supervisor.Supervisor{}}).routes()
	for _, op := range api.Operations() {
		want := "POST /v1/" + op.Name
		if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/"+op.Name, nil)); pattern != want {
			t.Errorf("%s is served by %q", op.Name, pattern)
		}
	}
	for _, s := range api.Streams() {
		if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.Path, nil)); pattern != "GET "+s.Path {
			t.Errorf("%s is served by %q", s.Path, pattern)
		}
	}
}

// An error that the table does not list for its operation is answered unchanged, and the log names
// the defect.
func TestUnlistedErrors(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := &Daemon{Log: slog.New(slog.NewTextHandler(&log, nil))}
	rs, code := newRequests(d), agency.CodeTimerNotFound
	handle(rs, api.ListRuns, func(context.Context, api.ListRunsRequest) (api.ListRunsResponse, error) {
		return api.ListRunsResponse{}, agency.Errorf(code, "gone")
	})
	ask := func() *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		rs.mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/"+api.ListRuns.Name, strings.NewReader(`{}`)))
		return answer
	}
	if answer := ask(); answer.Code != http.StatusNotFound || !strings.Contains(log.String(), `msg="unlisted error" operation=run.list code=E_TIMER_NOT_FOUND`) {
		t.Errorf("answered %d, and wrote %q", answer.Code, log.String())
	}
	log.Reset()
	code = agency.CodeRunNotFound
	if ask(); log.Len() > 0 {
		t.Errorf("wrote %q", log.String())
	}
}

// An act that the stop of the daemon cut off may have been done, and is no defect of agency.
func TestCutOff(t *testing.T) {
	t.Parallel()
	cancelled, other := fmt.Errorf("work: %w", context.Canceled), agency.Errorf(agency.CodeRunNotFound, "gone")
	for _, test := range []struct {
		kind api.Kind
		err  error
		want agency.Code
	}{
		{api.Acts, cancelled, agency.CodeDaemonLost},
		{api.Acts, other, agency.CodeRunNotFound},
		{api.Reads, cancelled, agency.CodeDaemonLost},
		{api.Waits, cancelled, agency.CodeDaemonConnectFailed},
		{api.Waits, other, agency.CodeDaemonConnectFailed},
	} {
		if err := cutOff(test.kind, test.err); !agency.IsCode(err, test.want) {
			t.Errorf("%d, %v: %v", test.kind, test.err, err)
		}
	}
}
