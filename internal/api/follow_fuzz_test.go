package api_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
)

// Following any stream of events ends with the stream, and with an error of agency's own.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("data: {\"seq\":1,\"type\":\"run.created\"}\n\ndata: {\"seq\":2}\n\n"))
	f.Add([]byte(": ping\n\ndata: {\"seq\":1}\n"))
	f.Add([]byte("data: [1]\n\n"))
	f.Add([]byte("data: {\"seq\":\"x\"}\r\nevent: run\nid\n"))
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		f.Fatal(err)
	}
	var stream atomic.Pointer[[]byte]
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(*stream.Load())
	})}
	go func() { _ = server.Serve(listener) }()
	f.Cleanup(func() { _ = server.Close() })
	client := api.NewClient(path, "1", nil)
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, data []byte) {
		stream.Store(&data)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := client.Follow(ctx, 0, "", func() {}, func(agency.Event) error { return nil })
		if !agency.IsCode(err, agency.CodeDaemonLost) && !agency.IsCode(err, agency.CodeDaemonConnectFailed) {
			t.Errorf("got %v", err)
		}
	})
}
