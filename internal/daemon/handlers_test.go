package daemon

import (
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
)

// A wait ends with its daemon by an error that has the client ask the next one, wherever the end met it.
func TestWaitsEndWithTheDaemon(t *testing.T) {
	d := &Daemon{Log: slog.New(slog.DiscardHandler), stopping: make(chan struct{})}
	mux, waits := http.NewServeMux(), make(chan struct{})
	handle(d, mux, api.WaitRuns, func(ctx context.Context, _ api.WaitRunsRequest) (api.WaitRunsResponse, error) {
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
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.WaitRuns.Path(), strings.NewReader(`{}`)))
	var env api.Envelope
	if err := json.NewDecoder(answer.Body).Decode(&env); err != nil {
		t.Fatal(err)
	}
	if err := env.Err(); !agency.IsCode(err, agency.CodeDaemonConnectFailed) {
		t.Errorf("got %v", err)
	}
}
