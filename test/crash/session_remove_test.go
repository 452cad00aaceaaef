package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// removePoints are the points where the removal of a session can be interrupted.
var removePoints = []string{"session.remove.recorded", "session.remove.cleared"}

// A session whose removal was interrupted is gone after the next start, with its files, however
// often it is requested.
func TestSessionRemove(t *testing.T) {
	t.Parallel()
	for _, point := range removePoints {
		t.Run(point, func(t *testing.T) { t.Parallel(); killRemove(t, point) })
	}
}

func killRemove(t *testing.T, point string) {
	begin := time.Now()
	w := newWorld(t)
	id := strings.TrimSpace(w.must("session", "create", "--agent", "001"))
	w.must("session", "update", id, "--agent", "001", "start")
	w.must("session", "update", id, "--agent", "001", "complete")
	w.hold(point, "session", "rm", id)
	var daemon victim
	for _, v := range victims() {
		if v.name == "daemon" {
			daemon = v
		}
	}
	pids := daemon.pids(w)
	w.kill(pids)
	w.awaitDeath(pids)
	w.release()
	w.awaitClient()
	w.f.Agency("session", "rm", id) // again: it no longer exists
	status := filepath.Join(w.f.Repo, ".agency", "status")
	w.await("the end of its files", func() bool {
		_, err := os.Lstat(filepath.Join(status, "sessions", id))
		return os.IsNotExist(err)
	})
	wrong := []string{}
	if _, err := os.Readlink(filepath.Join(status, "active-session")); err == nil {
		wrong = append(wrong, "the link to it is left")
	}
	if list := w.must("session", "ls"); list != "" {
		wrong = append(wrong, fmt.Sprintf("the list is %q", list))
	}
	c := cell{row: "session rm: " + point, victim: "daemon", outcome: outcomeDone}
	if len(wrong) > 0 {
		t.Errorf("%s\nthe client said: %s\nthe log:\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
		c.outcome = outcomeViolation
	}
	c.took = time.Since(begin)
	note(c)
}
