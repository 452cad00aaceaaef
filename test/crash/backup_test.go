package crash_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backups returns the backups that the daemon made by itself.
func (w *folder) backups() []string {
	found, _ := filepath.Glob(filepath.Join(w.f.Data, "backups", "*.db"))
	return found
}

// The daemon makes a backup of the record once a day, and keeps as many as the configuration says.
// The newest restores a lost database.
func TestDailyBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure("[db]\nbackups = 2\n")
	seen := ""
	for day := range 3 {
		w.must("daemon", "stop")
		w.setClock(time.Duration(day)*25*time.Hour + 2*time.Hour)
		w.must("tags", "add", "other", fmt.Sprintf("day-%d", day))
		w.await("a backup", func() bool { made := w.backups(); return len(made) == min(day+1, 2) && made[len(made)-1] > seen })
		seen = w.backups()[min(day, 1)]
	}
	if said := w.must("doctor"); !strings.Contains(said, "backup") || !strings.Contains(said, filepath.Base(seen)) {
		t.Errorf("doctor does not tell of %s:\n%s", seen, said)
	}
	w.must("daemon", "stop")
	w.deleted("agency.db")
	if r := w.f.Agency("ls"); !strings.Contains(r.Stderr, "E_DB_MISSING") || !strings.Contains(r.Stderr, "agency db restore "+seen) {
		t.Errorf("ls: exit %d: %s", r.Exit, r.Stderr)
	}
	w.must("db", "restore", seen)
	if tags := w.must("tags", "ls", "other"); !strings.Contains(tags, "day-1") {
		t.Errorf("tags %s", tags)
	}
	w.calm(false)
}
