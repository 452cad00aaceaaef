package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agency/internal/view"
)

func TestFacts(t *testing.T) {
	for data, want := range map[string]string{
		`{}`: "",
		`{"state":"failed","exit_code":null,"error":"","signal":"SIGKILL","attempt":2}`:              "state failed, signal SIGKILL, attempt 2",
		`{"request":{"kind":"permission","text":"make\n all","options":[],"shown":false},"turn":""}`: "request (kind permission, text make all, not shown)",
		`{"recipients":["user","lead"],"hosts":[{"host":"a.example","count":2}],"confirmed":true}`:   "recipients user | lead, hosts (host a.example, count 2), confirmed",
		`{"error_code":"E_USAGE","text":"` + strings.Repeat("é", 300) + `"}`:                         "error code E_USAGE, text " + strings.Repeat("é", 200) + "…",
		`"cut`:           `"cut`,
		`{"a":"b","c":{`: "a b",
	} {
		if got := view.Facts(json.RawMessage(data)); got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1},[true,null]],"c":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(_ *testing.T, data []byte) { view.Facts(data) })
}
