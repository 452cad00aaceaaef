package runner_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"agency/internal/runner"
)

// smallDisk mounts a disk of the given number of pages.
func smallDisk(t *testing.T, pages int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("nr_blocks=%d,mode=0700", pages)); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// On a disk that is full again and again, and at the end, what a log holds and what it reports as
// missing add up to all that was written, wherever the pieces begin.
func TestLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 16)
	filler := func(page int) string { return filepath.Join(disk, fmt.Sprint("filler", page)) }
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		dir := filepath.Join(disk, fmt.Sprint(seed))
		write, closeLogs, err := runner.CreateLogs(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		written, page := 0, 0
		for os.WriteFile(filler(page), make([]byte, 1<<12), 0o600) == nil {
			page++
		}
		for page > 0 {
			piece := bytes.Repeat([]byte("x"), 1+random.IntN(1<<random.IntN(13)))
			written += len(piece)
			write(piece)
			if random.IntN(20) == 0 {
				if err := os.Remove(filler(page)); err != nil {
					t.Fatal(err)
				}
				page--
			}
		}
		for range 100 {
			written += 1000
			write(bytes.Repeat([]byte("y"), 1000))
		}
		closeLogs()
		data, err := os.ReadFile(filepath.Join(dir, "runner.log"))
		if err != nil {
			t.Fatal(err)
		}
		if there, missing, marks := account(t, data); marks == 0 || there+missing != written {
			t.Fatalf("seed %d: %d bytes are there, %d marks say that %d are missing, and %d were written", seed, there, marks, missing, written)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		awaitRoom(t, disk, 15) // a page has the filler that stays
	}
}

// awaitRoom waits until a disk has room. A process that another test starts has the files of this one
// open until it runs its own program, and what is removed takes room until then.
func awaitRoom(t *testing.T, disk string, pages uint64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(disk, &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Bfree >= pages {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d pages of %s are free, and %d should be", stat.Bfree, disk, pages)
		}
	}
}

var gapMark = regexp.MustCompile(`\n\[agency: (\d+) bytes are missing here, the disk did not take them\] *\n`)

// account counts the bytes that a log has, and those that it reports as missing.
func account(t *testing.T, log []byte) (there, missing, marks int) {
	t.Helper()
	there = len(log)
	for _, m := range gapMark.FindAllSubmatch(log, -1) {
		n := 0
		if _, err := fmt.Sscan(string(m[1]), &n); err != nil {
			t.Fatal(err)
		}
		there, missing, marks = there-len(m[0]), missing+n, marks+1
	}
	return there, missing, marks
}
