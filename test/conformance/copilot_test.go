package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func copilotHome(t *testing.T, dir, _, url string) []string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"trustedFolders": []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "home", ".copilot", "config.json"), string(config))
	return []string{
		"COPILOT_CACHE_HOME=" + filepath.Join(os.Getenv("AGENCY_AGENTS"), "copilot"), "COPILOT_OFFLINE=true",
		"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=" + key, "COPILOT_MODEL=scripted",
	}
}
