package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"agency"
	"agency/internal/file"
	"agency/internal/spool"
	"agency/internal/status"
)

func busy(id string) agency.Evidence {
	return agency.Evidence{
		At: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), Source: agency.FromHook, Signal: agency.SignalToolStarted, ID: id, Tool: "Bash",
	}
}

// Appended evidence is read once, in order, and reading continues where it stopped.
func TestAppendAndTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	if evidence, next, err := spool.Tail(path, 0); len(evidence) != 0 || next != 0 || err != nil {
		t.Fatalf("without a file: %v, %d, %v", evidence, next, err)
	}
	offset := int64(0)
	for round := range 3 {
		first, second := busy(fmt.Sprint(round)), busy("second\nline")
		if err := spool.Append(path, first, second); err != nil {
			t.Fatal(err)
		}
		evidence, next, err := spool.Tail(path, offset)
		if err != nil || len(evidence) != 2 || evidence[0] != first || evidence[1] != second || next <= offset {
			t.Fatalf("round %d: %+v, %d, %v", round, evidence, next, err)
		}
		offset = next
	}
	if evidence, next, err := spool.Tail(path, offset); len(evidence) != 0 || next != offset || err != nil {
		t.Errorf("at the end: %v, %d, %v", evidence, next, err)
	}
}

// Many processes write at once, like the hooks of parallel tools: no line is lost, and none is
// mixed with another.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 50
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := spool.Append(path, busy(fmt.Sprintf("%d %d", w, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	evidence, _, err := spool.Tail(path, 0)
	if err != nil || len(evidence) != writers*each {
		t.Fatalf("%d pieces, %v", len(evidence), err)
	}
	next := map[int]int{}
	for _, e := range evidence {
		var w, n int
		if _, err := fmt.Sscanf(e.ID, "%d %d", &w, &n); err != nil || n != next[w] {
			t.Fatalf("%q comes where %d is due: %v", e.ID, next[w], err)
		}
		next[w]++
	}
}

// A line that a full disk cut off damages no other line; one that is still being written is read
// later.
func TestTornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	if err := spool.Append(path, busy("1")); err != nil {
		t.Fatal(err)
	}
	_, whole, _ := spool.Tail(path, 0)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"at":"2026-11-22T09:00:00Z","sou`)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if evidence, next, err := spool.Tail(path, whole); len(evidence) != 0 || next != whole || err != nil {
		t.Errorf("a line without an end: %v, %d, %v", evidence, next, err)
	}
	if err := spool.Append(path, busy("2")); err != nil {
		t.Fatal(err)
	}
	evidence, _, err := spool.Tail(path, whole)
	if err != nil || len(evidence) != 2 || evidence[0].Signal != agency.SignalUnknown || evidence[1] != busy("2") {
		t.Errorf("got %+v, %v", evidence, err)
	}
}

// A file that was started again is read from its beginning.
func TestShorterFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	if err := spool.Append(path, busy("1")); err != nil {
		t.Fatal(err)
	}
	evidence, _, err := spool.Tail(path, 1<<20)
	if err != nil || len(evidence) != 1 {
		t.Errorf("got %v, %v", evidence, err)
	}
}

// Neither reading nor writing follows a link or waits for a pipe.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link, pipe, folder := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(target, link), syscall.Mkfifo(pipe, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe} {
		if err := spool.Append(path, busy("1")); !errors.Is(err, file.ErrNotRegular) {
			t.Errorf("append to %s: %v", filepath.Base(path), err)
		}
		if _, _, err := spool.Tail(path, 0); !errors.Is(err, file.ErrNotRegular) {
			t.Errorf("read %s: %v", filepath.Base(path), err)
		}
	}
	if err := spool.Append(folder, busy("1")); err == nil {
		t.Error("a folder took evidence")
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was written through the link")
	}
}

// In a folder that another program controls, links are not followed either, and a full file is
// started again.
func TestAppendBeneath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const rel, limit = "state/reports.jsonl", 500
	for n := range 20 {
		if err := spool.AppendBeneath(root, rel, limit, busy(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		evidence, size, err := spool.Tail(filepath.Join(root, rel), 0)
		if err != nil || size > limit || len(evidence) == 0 || evidence[len(evidence)-1] != busy(fmt.Sprint(n)) {
			t.Fatalf("after %d: got %+v, %d bytes, %v", n, evidence, size, err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := spool.AppendBeneath(root, "link/reports.jsonl", limit, busy("1")); !errors.Is(err, file.ErrNotRegular) {
		t.Errorf("through a link: %v", err)
	}
}

// A request that was cut off shows that, so that nobody allows what only begins well.
func TestRequestCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	for _, text := range []string{"rm -rf build", strings.Repeat("x", agency.EvidenceText), strings.Repeat("echo ", 500) + "&& rm -rf .", "a" + strings.Repeat("界", 1000)} {
		asked := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalAsked, Kind: agency.AsksPermission, Tool: "Bash", Text: text}
		if err := errors.Join(os.RemoveAll(path), spool.Append(path, asked)); err != nil {
			t.Fatal(err)
		}
		evidence, _, err := spool.Tail(path, 0)
		if err != nil || len(evidence) != 1 {
			t.Fatal(evidence, err)
		}
		got := agency.Request{Text: evidence[0].Text}
		if got.Cut() != (len(text) > agency.EvidenceText) || len(got.Text) > agency.EvidenceText || !got.Cut() && got.Text != text {
			t.Errorf("%d bytes became %d, cut %t", len(text), len(got.Text), got.Cut())
		}
	}
}

// A text is cut at a character boundary, and a full file takes only what changes the agent's state.
func TestLimits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	long := busy("1")
	long.Text, long.Tool = strings.Repeat("ä", agency.EvidenceText), strings.Repeat("x", 1000)
	ended := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalTurnEnded, Text: strings.Repeat("y", 3*agency.EvidenceText)}
	if err := spool.Append(path, long, ended); err != nil {
		t.Fatal(err)
	}
	evidence, next, err := spool.Tail(path, 0)
	if err != nil || len(evidence) != 2 {
		t.Fatal(evidence, err)
	}
	if e := evidence[0]; len(e.Text) > agency.EvidenceText || !utf8.ValidString(e.Text) || len(e.Tool) > 200 {
		t.Errorf("%d bytes of text, %d of a tool's name", len(e.Text), len(e.Tool))
	}
	if evidence[1].Text != ended.Text {
		t.Errorf("the last message was cut to %d bytes", len(evidence[1].Text))
	}
	const full = 64<<20 + 1
	if err := os.Truncate(path, full); err != nil { // a hole, which needs no disk space
		t.Fatal(err)
	}
	asked := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalAsked, Kind: agency.AsksQuestion, Text: "Which?"}
	if err := spool.Append(path, busy("2"), asked); err != nil {
		t.Fatal(err)
	}
	if evidence, _, err = spool.Tail(path, full); err != nil || len(evidence) != 1 || evidence[0] != asked {
		t.Errorf("behind %d of %d bytes: %+v, %v", next, full, evidence, err)
	}
}

// A full file still takes how far the agent's own file was read, and the end of a tool that needed
// an answer.
func TestFullFileKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	const full = 64<<20 + 1
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, full)); err != nil {
		t.Fatal(err)
	}
	transcript := func(signal agency.Signal, offset int64) agency.Evidence {
		return agency.Evidence{Source: agency.FromTranscript, Signal: signal, Offset: offset}
	}
	hook := func(signal agency.Signal, id, text string) agency.Evidence {
		return agency.Evidence{Source: agency.FromHook, Signal: signal, ID: id, Text: text}
	}
	failed := transcript(agency.SignalFailed, 0)
	if err := spool.Append(path, hook(agency.SignalToolStarted, "2", "make"), hook(agency.SignalToolEnded, "1", "make"), hook(agency.SignalToolEnded, "", ""),
		hook(agency.SignalUnknown, "", ""), transcript(agency.SignalUsage, 0), failed, transcript(agency.SignalUsage, 700)); err != nil {
		t.Fatal(err)
	}
	evidence, _, err := spool.Tail(path, full)
	if err != nil {
		t.Fatal(err)
	}
	if want := []agency.Evidence{hook(agency.SignalToolEnded, "1", ""), failed, transcript(agency.SignalUsage, 700)}; !slices.Equal(evidence, want) {
		t.Errorf("got %+v, want %+v", evidence, want)
	}
	var s agency.AgentState
	status.Observe(&s, agency.Evidence{Source: agency.FromHook, Signal: agency.SignalAsked, Kind: agency.AsksPermission, ID: "1"})
	for _, e := range evidence {
		status.Observe(&s, e)
	}
	if len(s.Requests) > 0 || s.TranscriptOffset != 700 {
		t.Errorf("got requests %v, read up to %d", s.Requests, s.TranscriptOffset)
	}
}

// A line without an end is skipped, so that it cannot stop the reader for good.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := spool.Append(path, busy("1")); err != nil {
		t.Fatal(err)
	}
	var last agency.Evidence
	for offset := int64(0); ; {
		evidence, next, err := spool.Tail(path, offset)
		if err != nil {
			t.Fatal(err)
		}
		if next == offset {
			break
		}
		offset, last = next, evidence[len(evidence)-1]
	}
	if last != busy("1") {
		t.Errorf("the last is %+v", last)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-22T09:00:00Z","source":"hook","signal":"busy"}` + "\n\n{}\nnot json\n"))
	f.Add([]byte(`{"source":"hook","signal":"usage","usage":{"cost_usd":1e308}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s agency.AgentState
		for _, e := range spool.Parse(data) {
			if e.Source == "" || e.Signal == "" || !utf8.ValidString(e.Text) || len(e.Text) > agency.EvidenceMessage {
				t.Errorf("%+v is no evidence", e)
			}
			status.Observe(&s, e)
		}
	})
}
