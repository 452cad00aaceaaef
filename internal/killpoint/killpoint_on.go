//go:build killpoints

package killpoint

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Variable names the file that arms a place. It holds the place's name, and "hold" behind it when the process shall wait
// there instead of dying.
const Variable = "AGENCY_KILLPOINT"

// At ends the process with SIGKILL when the place, its parts joined with dots, is armed. The file is renamed to FILE.hit
// first, so that a place is hit once, by one process. With "hold" the caller waits until FILE.hit is gone, while whoever
// armed the place kills what he likes.
func At(place ...string) {
	armed := os.Getenv(Variable)
	if armed == "" {
		return
	}
	data, err := os.ReadFile(armed)
	if err != nil {
		return
	}
	name, how, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if name != strings.Join(place, ".") {
		return
	}
	hit := armed + ".hit"
	if os.Rename(armed, hit) != nil {
		return // another process was faster
	}
	if how != "hold" {
		_ = os.WriteFile(hit, []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	for {
		if _, err := os.Lstat(hit); errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
