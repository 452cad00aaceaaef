package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/runner"
)

// The record of an agent whose wrapper was killed before it has what it did with its network.
func TestHeldHasItsNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"held.json":            `{"wait_status": 0}`,
		"wrapper/network.json": `{"hosts": ["a.example"], "refused": [{"host": "b.example:443", "count": 7}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exit, err := runner.Held(dir, &agency.Start{}, agency.Shell)
	if err != nil || exit == nil || exit.Network == nil || exit.Network.Hosts[0] != "a.example" || exit.Network.Refused[0].Count != 7 {
		t.Errorf("got %+v, %v", exit, err)
	}
}
