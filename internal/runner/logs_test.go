package runner_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency/internal/runner"
)

func readAll(t *testing.T, l runner.Log) string {
	t.Helper()
	data, err := io.ReadAll(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func openLog(t *testing.T, dir, stream string, since time.Time) runner.Log {
	t.Helper()
	l, err := runner.OpenLog(dir, stream, since)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestLogRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write, closeLogs, err := runner.CreateLogs(filepath.Join(dir, "logs"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLogs()
	follower := openLog(t, dir, "runner", time.Time{})
	var all, followed strings.Builder
	for i := range 500 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		write([]byte(line))
		followed.WriteString(readAll(t, follower))
	}
	if followed.String() != all.String() {
		t.Errorf("a reader that keeps up missed something, or saw it twice: %d bytes of %d", followed.Len(), all.Len())
	}
	got := readAll(t, openLog(t, dir, "stdout", time.Time{}))
	marker, rest, _ := strings.Cut(got, "\n")
	var dropped int
	if _, err := fmt.Sscanf(marker, "[agency: the first %d bytes of this log were dropped]", &dropped); err != nil {
		t.Fatalf("the log begins with %q", marker)
	}
	if rest != all.String()[dropped:] {
		t.Errorf("after %d dropped bytes come %.40q", dropped, rest)
	}
	if len(got) > 1100 || len(rest) < 400 {
		t.Errorf("the log has %d bytes", len(got))
	}

	late := openLog(t, dir, "runner", time.Time{})
	_, _ = io.ReadFull(late, make([]byte, 10))
	for i := range 500 {
		write(fmt.Appendf(nil, "more %d\n", i))
	}
	if text := readAll(t, late); !strings.Contains(text, "[agency: the first ") || !strings.HasSuffix(text, "more 499\n") {
		t.Errorf("a reader that fell behind does not learn of it: %q", text)
	}
}

func TestLogSince(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	base := time.UnixMilli(1_700_000_000_000)
	at := func(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))) }
	index := fmt.Sprintf("%d 0 0 0\n%d 10 6 4\n%d 20 6 14\n", at(0).UnixMilli(), at(10).UnixMilli(), at(20).UnixMilli())
	for name, text := range map[string]string{
		"index": index, "runner.log": "0123456789abcdefghijKLMNO", "runner.stdout.log": "012345uvw", "runner.stderr.log": "6789abcdefghijKL",
	} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		stream string
		since  float64
		want   string
	}{
		{"runner", -5, "0123456789abcdefghijKLMNO"},
		{"runner", 0.5, "0123456789abcdefghijKLMNO"},
		{"runner", 5, "abcdefghijKLMNO"},
		{"runner", 10, "abcdefghijKLMNO"},
		{"runner", 20.9, "KLMNO"},
		{"runner", 30, ""},
		{"stdout", 10, "uvw"},
		{"stderr", 20, "KL"},
	} {
		if got := readAll(t, openLog(t, dir, c.stream, at(c.since))); got != c.want {
			t.Errorf("%s since %v: %q, want %q", c.stream, c.since, got, c.want)
		}
	}
}

func TestLogIsHostile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(logs, "runner.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(logs, "runner.stdout.log")); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"runner", "stdout", "stderr", "../x"} {
		if l, err := runner.OpenLog(dir, stream, time.Time{}); err == nil {
			t.Errorf("opened %s", stream)
			_ = l.Close()
		}
	}
}

func TestLostBytesAreReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	write, err := runner.LoseBytes(path, 42)
	if err != nil {
		t.Fatal(err)
	}
	write([]byte("on\n"))
	data, _ := os.ReadFile(path)
	if want := fmt.Sprintf("\n%-90s\non\n", "[agency: 42 bytes are missing here, the disk did not take them]"); string(data) != want {
		t.Errorf("the log is %q", data)
	}
}

// A limited log of a whole attempt.
func TestLogLimit(t *testing.T) {
	t.Parallel()
	f := prepare(t, `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done`)
	f.launch.Headless = true
	f.launch.LogBytes = 4096
	f.begin(false)
	f.wait()
	for _, stream := range []string{"runner", "stdout"} {
		if got := f.log(stream); len(got) > 8192+300 || !strings.HasPrefix(got, "[agency: the first ") || !strings.HasSuffix(got, "line 2999\n") {
			t.Errorf("%s: %d bytes that begin with %.60q", stream, len(got), got)
		}
	}
	index, err := os.ReadFile(filepath.Join(f.launch.AttemptDir, "logs", "index"))
	if err != nil || !strings.HasSuffix(strings.Split(string(index), "\n")[0], " 0 0 0") {
		t.Errorf("index %q, %v", index, err)
	}
}
