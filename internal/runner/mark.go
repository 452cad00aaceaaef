package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// A mark distinguishes the processes of an attempt, or of a setup, from all others. It is a list of
// entries in their environment and, on Linux, also their hash as the soft limit of a resource that
// only programs with a real-time schedule use; the limit is longer than a machine lives. A process
// that drops its environment, its session, its parent and its descriptors keeps its limits.

// markLimit is the least limit that is a mark, in microseconds.
const markLimit = 1 << 61

// limitOf returns the limit that represents a mark.
func limitOf(mark []string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(mark, "\x00")))
	return markLimit | binary.BigEndian.Uint64(sum[:8])>>3
}

func hasEntries(environ []byte, entries []string) bool {
	for _, entry := range entries {
		if !bytes.Contains(environ, []byte("\x00"+entry+"\x00")) {
			return false
		}
	}
	return true
}

// entry returns the entry NAME=value of an environment; empty when there is none.
func entry(environ []byte, name string) string {
	_, rest, found := bytes.Cut(environ, []byte("\x00"+name+"="))
	value, _, _ := bytes.Cut(rest, []byte{0})
	if !found {
		return ""
	}
	return name + "=" + string(value)
}

// SetMark gives this process, and all that it starts from now on, a mark.
func SetMark(mark []string) { setMark(0, mark) }
