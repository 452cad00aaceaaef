package session_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"agency"
	"agency/internal/session"
)

// The message about the end of a session names its report, if there is one.
func TestMessengerNamesTheReport(t *testing.T) {
	t.Parallel()
	s := &agency.Session{ID: "20260201-143022-abc12345", Status: agency.SessionComplete, Owner: agency.User, Dir: t.TempDir()}
	var payload map[string]any
	to := session.Messenger{
		Owner: func(_ context.Context, _ string, m *agency.Message) ([]string, error) {
			payload = nil
			return nil, json.Unmarshal(m.Payload, &payload)
		},
		Now: time.Now,
	}
	send := func() (path any, named bool) {
		t.Helper()
		if err := to.Send(t.Context(), s, agency.NoticeComplete, "1 complete"); err != nil {
			t.Fatal(err)
		}
		path, named = payload["report_path"]
		return path, named
	}
	if path, named := send(); named {
		t.Errorf("without a report the message names %v", path)
	}
	if err := os.WriteFile(s.ReportPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, _ := send(); path != s.ReportPath() {
		t.Errorf("the message names %v", path)
	}
}
