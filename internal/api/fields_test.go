package api_test

import (
	"encoding/json"
	"testing"

	"agency"
	"agency/internal/api"
)

// A client that asks for some fields of runs gets these.
func TestOnly(t *testing.T) {
	resp := api.ListRunsResponse{Runs: []api.Run{{Handle: "1122-fix", Summary: "<done>", Branch: "agency/1122-fix"}}}
	for want, fields := range map[string][]string{
		`{"runs":[{"handle":"1122-fix","pr_number":null}]}`: {"handle", "pr_number"},
		`{"runs":[{"branch":"agency/1122-fix"}]}`:           {"branch"},
	} {
		part, err := resp.Only(fields)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(part); err != nil || string(got) != want {
			t.Errorf("%v: got %s (%v), want %s", fields, got, err, want)
		}
	}
	if all, err := resp.Only(nil); err != nil || len(all.(api.ListRunsResponse).Runs) != 1 {
		t.Errorf("without fields: got %v (%v)", all, err)
	}
	if _, err := resp.Only([]string{"nope"}); !agency.IsCode(err, agency.CodeUsage) {
		t.Errorf("an unknown field: got %v", err)
	}
}
