package runner_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"agency"
	"agency/internal/protocol"
	"agency/internal/runner"
)

// complainer writes a million numbered lines to its error output for each message.
const complainer = `
n=0
while read -r kind id text; do
	case $kind in
	hello|look) echo "hello $id" ;;
	message) echo "begun $id"; seq $((n * 1000000 + 1)) $(((n + 1) * 1000000)) >&2; n=$((n + 1)); echo "says wrote $n" ;;
	esac
done`

// The error output of an agent takes little of the disk, also after the wrapper was killed, and nothing
// of it is lost.
func TestErrorOutput(t *testing.T) {
	t.Parallel()
	f := prepare(t, complainer)
	f.launch.Mode = agency.ModeProtocol
	daemon := f.listen(0)
	f.beginOn(f.shown)
	for turn := range 4 {
		if turn > 0 {
			f = f.die()
			f.adopt()
		}
		complain(t, f, receive(t, "the link", daemon.links), turn)
		eventually(t, "a small file", func() bool { return blocks(t, f, "logs/runner.stderr.log") < 5<<20 })
	}
	log, err := runner.OpenLog(f.launch.AttemptDir, "stderr", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	count, lines := 0, bufio.NewScanner(log)
	for lines.Scan() {
		if count++; lines.Text() != strconv.Itoa(count) {
			t.Fatalf("%.60q is there in place of line %d", lines.Text(), count)
		}
	}
	if lines.Err() != nil || count != 4_000_000 {
		t.Errorf("%d lines, %v", count, lines.Err())
	}
	if tail, err := runner.Tail(f.launch.AttemptDir, "stderr", 16); err != nil || string(tail) != "3999999\n4000000\n" {
		t.Errorf("the end is %q, %v", tail, err)
	}
}

// The archive of much output at once can be read from its end.
func TestLargeArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := bytes.Repeat([]byte("x"), 1<<10-1)
	data := bytes.Repeat(append(line, '\n'), 40<<10)
	if err := os.WriteFile(filepath.Join(dir, protocol.WireFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runner.Archive(dir, protocol.WireFile, int64(len(data)), 0); err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "archive", "*.gz"))
	if err != nil || len(parts) != 3 {
		t.Fatalf("the archive has the parts %q, %v", parts, err)
	}
	if got := lastLines(t, dir, "wire", 20<<10); !bytes.Equal([]byte(got), data[20<<20:]) {
		t.Errorf("the end has %d bytes", len(got))
	}
}

// complain has such an agent write the lines of a turn.
func complain(t *testing.T, f *fixture, link *runner.Link, turn int) {
	t.Helper()
	message := agency.Saying{Kind: agency.SaysMessage, ID: fmt.Sprint("m", turn), Text: "go", By: agency.User}
	if _, err := link.Say(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	f.logged(fmt.Sprint("wrote ", turn+1))
}

// After a program truncated the error output, as "echo > /dev/stderr" does, what comes next is read.
func TestTruncatedErrorOutput(t *testing.T) {
	t.Parallel()
	f := prepare(t, complainer)
	f.launch.Mode = agency.ModeProtocol
	daemon := f.listen(0)
	f.beginOn(f.shown)
	link := receive(t, "the link", daemon.links)
	complain(t, f, link, 0)
	path := filepath.Join(f.launch.AttemptDir, "logs/runner.stderr.log")
	eventually(t, "a small file", func() bool { return blocks(t, f, "logs/runner.stderr.log") < 5<<20 })
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its length", func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 4<<20 })
	complain(t, f, link, 1)
	eventually(t, "the end", func() bool {
		tail, err := runner.Tail(f.launch.AttemptDir, "stderr", 16)
		return err == nil && string(tail) == "1999999\n2000000\n"
	})
}
