package crash_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"agency"
)

// This file does what a user does who follows agency's advice to repair something.

var restoreHint = regexp.MustCompile(`agency db restore (\S+) puts the newest backup in its place`)

// bringBack follows agency's hint about a missing database. final is true if the database
// must not be missing.
func (l *life) bringBack(hint string) (wrong []string, final bool) {
	if !l.losable {
		return []string{"a daemon lived when the database was deleted, and it is not there: " + hint}, true
	}
	l.note("%s", hint)
	steps := [][]string{{"db", "rebuild"}}
	if backup := restoreHint.FindStringSubmatch(hint); backup != nil {
		steps = [][]string{{"db", "restore", backup[1]}, {"db", "rebuild"}}
	}
	for _, args := range steps {
		r := l.f.Agency(args...)
		l.note("agency %q: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
		if r.Exit != 0 {
			return []string{strings.Join(args, " ") + ": " + r.Stdout + r.Stderr}, false
		}
	}
	l.rebuilt = true
	return []string{"the database was missing"}, false
}

// tidy follows doctor's fixes for everything that belongs to no run: after a rebuild these are runs
// that were about to be created when the record was lost.
func (l *life) tidy() {
	var report struct {
		Checks []struct{ Name, Text, Fix string } `json:"checks"`
	}
	if err := l.data(&report, "doctor"); err != nil {
		return
	}
	for _, c := range report.Checks {
		if strings.HasPrefix(c.Name, "orphan ") && c.Fix != "" {
			r := l.f.Command("", "sh", "-c", c.Fix)
			l.note("%s %s: %s: exit %d: %s%s", c.Name, c.Text, c.Fix, r.Exit, r.Stdout, r.Stderr)
		}
	}
}

// trustAgain allows the setup that a session waits for.
func (l *life) trustAgain(id agency.SessionID) {
	for _, args := range [][]string{{"trust"}, {"session", "resume", string(id)}} {
		r := l.f.Agency(args...)
		l.note("agency %q: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
	}
}

// discard removes the databases that rebuilds have kept: each has a log with reserved space beside
// it, and the disk is small.
func (l *life) discard() {
	kept, _ := filepath.Glob(filepath.Join(l.f.Data, "agency.db.replaced-*"))
	for _, path := range kept {
		_ = os.Remove(path)
	}
}

// leftLocks returns the lock files of git that are too old for a git at work.
func (l *life) leftLocks() []string {
	left := []string{}
	_ = filepath.WalkDir(filepath.Join(l.f.Repo, ".git"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".lock") {
			return nil
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > 2*time.Second {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// unlockGit follows doctor's fixes for locks of killed gits, both of agents and of agency where
// agents write too. agency itself handles the locks of refs that only agency writes. It returns
// those that doctor does not name.
func (l *life) unlockGit() []string {
	common := filepath.Join(l.f.Repo, ".git")
	left := slices.DeleteFunc(l.leftLocks(), func(path string) bool {
		return strings.HasPrefix(path, filepath.Join(common, "refs", "agency")+"/") ||
			path == filepath.Join(common, "objects", "maintenance.lock") // of an agent's git commit; it only prevents git's own maintenance
	})
	if len(left) == 0 {
		return nil
	}
	named, err := l.namedLocks()
	if err != nil {
		return []string{err.Error()}
	}
	wrong := []string{}
	for _, path := range left {
		if named[path] == "" {
			wrong = append(wrong, "doctor does not tell of "+path)
			continue
		}
		r := l.f.Command("", "sh", "-c", named[path])
		l.note("%s: exit %d: %s", named[path], r.Exit, r.Stderr)
	}
	return wrong
}
