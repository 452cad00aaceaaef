package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// A mark tells the processes of an attempt, or of a setup, from all others. It is a list of entries of their environment
// and, on Linux, the number that these come to as the soft limit of a resource which only programs of a real-time schedule
// use, and of which it is longer than a machine lives. A process that drops its environment, its session, its parent
// and its descriptors keeps its limits.

// markLimit is the least limit that is a mark, in microseconds.
const markLimit = 1 << 61

// limitOf is the limit by which a mark shows.
func limitOf(mark []string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(mark, "\x00")))
	return markLimit | binary.BigEndian.Uint64(sum[:8])>>3
}

// carries says whether a process has the mark, in its environment as it began or in its limits.
func carries(pid int, mark []string) bool {
	return len(mark) > 0 && (hasEntries(environ(pid), mark) || limit(pid) == limitOf(mark))
}

func hasEntries(environ []byte, entries []string) bool {
	for _, entry := range entries {
		if !bytes.Contains(environ, []byte("\x00"+entry+"\x00")) {
			return false
		}
	}
	return true
}

// entry is the entry NAME=value of an environment; empty where there is none.
func entry(environ []byte, name string) string {
	_, rest, found := bytes.Cut(environ, []byte("\x00"+name+"="))
	value, _, _ := bytes.Cut(rest, []byte{0})
	if !found {
		return ""
	}
	return name + "=" + string(value)
}
