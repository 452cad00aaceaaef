package observe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/supervisor/observe"
)

// Whatever is in the place of a snapshot, it is accepted as the run's only with the run's id.
func FuzzRecordProblem(f *testing.F) {
	const id = "r_01JD00000000000000000000A1"
	f.Add([]byte(`{"id":"` + id + `","name":"login"}`))
	f.Add([]byte(`{"id":"r_01JD00000000000000000000A2"}`))
	f.Add([]byte(`{"id":"` + id + `"`))
	f.Add([]byte("[]"))
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "meta.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		problem := observe.RecordProblem(&agency.Run{ID: id, Dir: dir})
		var snapshot struct {
			ID string `json:"id"`
		}
		if fine := json.Unmarshal(data, &snapshot) == nil && snapshot.ID == id; fine != (problem == "") {
			t.Errorf("got problem %q", problem)
		}
	})
}
