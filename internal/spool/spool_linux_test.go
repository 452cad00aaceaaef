package spool_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/spool"
)

// An agent that continues without end does not fill the disk. A reader that keeps up loses nothing, and one
// that was away learns that it did.
func TestEndlessFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), agency.EventsFile)
	ended := agency.Evidence{At: time.Unix(1, 0).UTC(), Source: agency.FromHook, Signal: agency.SignalTurnEnded, Text: strings.Repeat("y", 1000)}
	line, err := json.Marshal(ended)
	if err != nil {
		t.Fatal(err)
	}
	line = append(line, '\n')
	if err := os.WriteFile(path, bytes.Repeat(line, 128<<20/len(line)), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err == nil {
		err = spool.Append(path, ended, ended)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Blocks*512 > 33<<20 {
		t.Fatalf("it takes %d bytes of the disk, %v", stat.Blocks*512, err)
	}
	if evidence, next, err := spool.Tail(path, before.Size()); err != nil || len(evidence) != 2 || evidence[0] != ended || next != stat.Size {
		t.Errorf("a reader that keeps up: %d pieces up to %d, %v", len(evidence), next, err)
	}
	lost, read := 0, 0
	for offset := int64(100 * len(line)); ; {
		evidence, next, err := spool.Tail(path, offset)
		if err != nil || next < offset {
			t.Fatal(next, err)
		}
		for _, e := range evidence {
			switch {
			case e.Signal == agency.SignalUnknown && e.Event == agency.EventLost:
				lost++
			case e == ended:
				read++
			default:
				t.Fatalf("at %d: %.200v", offset, e)
			}
		}
		if offset = next; offset == stat.Size {
			break
		}
	}
	if lost != 1 || read < 32<<20/len(line) || read > 33<<20/len(line) {
		t.Errorf("a reader that was away: %d pieces, and %d times that some were lost", read, lost)
	}
	if err := spool.Append(path, agency.Evidence{Source: agency.FromHook, Signal: agency.SignalToolStarted, ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if evidence, _, err := spool.Tail(path, stat.Size); err != nil || len(evidence) != 1 {
		t.Errorf("there is room for what does not change the state: %v, %v", evidence, err)
	}
}
