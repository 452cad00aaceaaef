package runner_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency/internal/protocol"
	"agency/internal/runner"
)

// lastLines returns what a log continues with.
func lastLines(t *testing.T, dir, stream string, lines int) string {
	t.Helper()
	l, err := runner.OpenLog(dir, stream, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := runner.GoToLast(l, lines); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The last lines of a log are those that tail prints.
func TestGoToLast(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	for _, c := range []struct {
		log   string
		lines int
		want  string
	}{
		{"", 0, ""},
		{"", 3, ""},
		{"a\nb\nc\n", 0, ""},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc", 1, "c"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 9, "a\nb\nc\n"},
		{"a\n\n", 1, "\n"},
		{"a\n" + long + "\nb\n", 2, long + "\nb\n"},
		{"a\n" + long + "\nb\n", 3, "a\n" + long + "\nb\n"},
		{"[agency: the first 10 bytes of this log were dropped]\nab\n", 1, "ab\n"},
		{"[agency: the first 10 bytes of this log were dropped]\nab\n", 2, "[agency: the first 10 bytes of this log were dropped]\nab\n"},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "logs", "runner.log"), []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastLines(t, dir, "runner", c.lines); got != c.want {
			t.Errorf("%d of %.80q: got %.80q, want %.80q", c.lines, c.log, got, c.want)
		}
	}
}

// The last lines of what an agent said are read without those parts of the archive that have none of
// them.
func TestGoToLastInArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, protocol.WireFile)
	var all strings.Builder
	for part := range 4 {
		for i := range 10_000 {
			fmt.Fprintf(&all, "part %d line %d\n", part, i)
		}
		if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if part == 3 {
			break
		}
		if err := runner.Archive(dir, protocol.WireFile, int64(all.Len()), 0); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.SplitAfter(strings.TrimSuffix(all.String(), "\n"), "\n")
	want := func(n int) string { return strings.Join(lines[len(lines)-n:], "") + "\n" }
	for _, n := range []int{1, 9_999, 10_000, 10_001, 25_000, 40_000} {
		if got := lastLines(t, dir, "wire", n); got != want(n) {
			t.Errorf("%d lines: got %d bytes from %.30q, want %d", n, len(got), got, len(want(n)))
		}
	}
	parts, err := filepath.Glob(filepath.Join(dir, "archive", "*.gz"))
	if err != nil || len(parts) != 3 {
		t.Fatal(parts, err)
	}
	if err := os.WriteFile(parts[1], nil, 0o600); err != nil { // it cannot be read from here on
		t.Fatal(err)
	}
	if got := lastLines(t, dir, "wire", 10_001); got != want(10_001) {
		t.Errorf("got %d bytes from %.30q", len(got), got)
	}
}
