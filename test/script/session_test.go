package script_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency/test/fixture"
)

// Sixteen executors report at once, each over its own connection, while a reader reads the file
// again and again: no report is lost, and no reading is torn.
func TestSixteenExecutors(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 40
	f := fixture.New(t, bin)
	id, dir := createAgents(t, f, writers*each)
	status := filepath.Join(dir, "status.json")
	var done atomic.Bool
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		for !done.Load() {
			data, err := os.ReadFile(status)
			if err != nil || !json.Valid(data) {
				t.Errorf("a torn file: %v, %d bytes", err, len(data))
				return
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			var lines strings.Builder
			for i := w * each; i < (w+1)*each; i++ {
				fmt.Fprintf(&lines, `{"agent":"%04d","action":"start","pid":%d}`+"\n", i, i+1)
				fmt.Fprintf(&lines, `{"agent":"%04d","action":"complete","exit_code":%d}`+"\n", i, i%3)
			}
			r := f.AgencyIn(lines.String(), "session", "update", id, "-", "--json")
			if got := strings.Count(r.Stdout, `{"ok":true,`); r.Exit != 0 || got != 2*each {
				t.Errorf("writer %d: exit status %d, %d answers\n%s", w, r.Exit, got, r.Stderr)
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	var shown struct {
		Data struct {
			Session struct {
				Status  string         `json:"status"`
				Summary map[string]int `json:"summary"`
			} `json:"session"`
			Agents []struct {
				ExitCode *int `json:"exit_code"`
			} `json:"agents"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(f.Agency("session", "show", id, "--json").Stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if got := shown.Data.Session; got.Status != "complete" || got.Summary["complete"] != writers*each {
		t.Errorf("the session is %+v", got)
	}
	for i, a := range shown.Data.Agents {
		if a.ExitCode == nil || *a.ExitCode != i%3 {
			t.Errorf("agent %d: exit code %v", i, a.ExitCode)
		}
	}
}

// createAgents makes a session with so many agents, and returns its id and its folder.
func createAgents(t *testing.T, f *fixture.Fixture, n int) (id, dir string) {
	t.Helper()
	agents := []string{}
	for i := range n {
		agents = append(agents, fmt.Sprintf(`{"id":"%04d"}`, i))
	}
	var made struct {
		Data struct {
			Session struct {
				ID  string `json:"id"`
				Dir string `json:"dir"`
			} `json:"session"`
		} `json:"data"`
	}
	created := f.AgencyIn("["+strings.Join(agents, ",")+"]", "session", "create", "--json", "--agents", "-")
	if err := json.Unmarshal([]byte(created.Stdout), &made); err != nil {
		t.Fatalf("%v: %s%s", err, created.Stdout, created.Stderr)
	}
	return made.Data.Session.ID, made.Data.Session.Dir
}

// The status file of another program becomes a session of agency, and the status file of that
// session contains all of it except the id and the log files, which belong to the new session.
func TestStatusFileComesBack(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	for _, name := range []string{"running", "completed", "failed", "cancelled"} {
		document, err := os.ReadFile(filepath.Join("..", "..", "internal", "sessionfile", "testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		given := statusFile(t, document)
		given["team"] = map[string]any{"night": []any{1.5, nil}}
		for _, wave := range given["waves"].([]any) {
			wave.(map[string]any)["title"] = "<first> \u00fc"
		}
		if document, err = json.Marshal(given); err != nil {
			t.Fatal(err)
		}
		created := f.AgencyIn(string(document), "session", "create", "--file", "-")
		if created.Exit != 0 {
			t.Fatalf("%s: %s", name, created.Stderr)
		}
		id := strings.TrimSpace(created.Stdout)
		written, err := os.ReadFile(filepath.Join(f.Repo, ".agency", "status", "sessions", id, "status.json"))
		if err != nil {
			t.Fatal(err)
		}
		got := statusFile(t, written)
		if got["session_id"] != id {
			t.Errorf("%s: the id is %v", name, got["session_id"])
		}
		for i, agent := range got["agents"].([]any) {
			was := given["agents"].([]any)[i].(map[string]any)
			for member, value := range agent.(map[string]any) {
				if _, ok := was[member]; !ok && (value == nil || member == "log_file") {
					delete(agent.(map[string]any), member) // agency has every member of the state, and its own logs
				}
			}
		}
		got["session_id"] = given["session_id"]
		if diff := cmp.Diff(given, got); diff != "" {
			t.Errorf("%s: -given +written\n%s", name, diff)
		}
		shown := f.Agency("session", "show", id)
		if want := given["status"].(string); !strings.Contains(shown.Stdout, want) {
			t.Errorf("%s is shown as %s", name, shown.Stdout)
		}
	}
}

func statusFile(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(document, &file); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return file
}
