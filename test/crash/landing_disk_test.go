package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallDisk mounts a small disk, or skips the test where that is not allowed.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	disk := t.TempDir()
	if err := mount(disk); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { unmount(disk) })
	return disk
}

// A landing for which the disk of the repository has too little room, at whatever step, is refused:
// the branch, the user's checkout and the record are as before, or when git left something half
// done that could not be put back, they are after the next try. With room it lands.
func TestFullDiskLanding(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"main", "elsewhere"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t)
			w := newWorldWith(t, "", filepath.Join(disk, "project"))
			l := landingOf(w, target, true)
			w.must("review", l.run, "--into", target)
			filler, refused := filepath.Join(disk, "filler"), 0
			for room := int64(0); ; room += 4 << 10 {
				fill(t, filler, room)
				r := w.f.Agency(w.again...)
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				if r.Exit == 0 {
					break
				}
				refused++
				if !strings.Contains(r.Stderr, "is full") || !strings.Contains(r.Stderr, "E_DISK_LOW") && !strings.Contains(r.Stderr, "E_LANDING_OPEN") {
					t.Errorf("with %d bytes: exit %d: %s", room, r.Exit, r.Stderr)
				}
				if strings.Contains(r.Stderr, "E_LANDING_OPEN") { // not even what git left could be put back
					w.must(w.again...)
					break
				}
				if wrong := l.violations(); len(wrong) > 0 {
					t.Fatalf("with %d bytes: %s", room, strings.Join(wrong, "\n"))
				}
			}
			if refused == 0 {
				t.Error("the disk was never full")
			}
			w.must("stop", "other")
			if wrong := append(w.repeatLanding(), w.database()...); len(wrong) > 0 {
				t.Error(strings.Join(wrong, "\n"))
			}
		})
	}
}

// Worktrees on another disk than the repository land, and are taken back, like others.
func TestLandingFromAnotherDisk(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, smallDisk(t))
	l := landingOf(w, "main", false)
	w.must(w.again...)
	if wrong := l.violations(); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	all, err := l.landings()
	if err != nil || len(all) != 1 {
		t.Fatalf("landings %v, %v", all, err)
	}
	w.again = []string{"merge", "--undo", string(all[0].ID)}
	if wrong := append(w.repeatLanding(), w.database()...); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}
