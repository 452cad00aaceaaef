package protocol

import (
	"bytes"
	"encoding/json"
	"time"

	"agency"
)

// The files of an attempt's journal.
const (
	// WireFile holds what came from the agent, as its program wrote it.
	WireFile = "wire.jsonl"
	// IntentFile holds what agency was about to write to the agent. Each line is in the file before the
	// agent can read the frame.
	IntentFile = "intent.jsonl"
)

// Intent is one line of IntentFile.
type Intent struct {
	At time.Time `json:"at"`
	agency.Saying
	Frame string `json:"frame"` // what is written
	// Wire is how many bytes of the agent agency had read before.
	Wire int64 `json:"wire"`
}

// ParseIntents reads an intent file. It leaves out a torn last line: its frame was never written to the
// agent.
func ParseIntents(data []byte) []Intent {
	var intents []Intent
	for line := range bytes.Lines(data) {
		var i Intent
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &i) == nil {
			intents = append(intents, i)
		}
	}
	return intents
}

// Lines cuts a stream into lines.
type Lines struct {
	rest    []byte
	pending int  // bytes of the unfinished line, also of those that are skipped
	long    bool // the line is too long; skip to its end
}

// lineLimit is the length in bytes of the longest line that is read.
const lineLimit = 16 << 20

// lineKept is how many bytes of memory are kept for the next lines.
const lineKept = 256 << 10

// Add adds a piece of the stream. It calls each with every line that the piece completes, and with the
// length of that line in the stream; the line is nil when it was too long. each must not keep the line.
func (l *Lines) Add(p []byte, each func(line []byte, length int)) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part, rest := p, []byte(nil)
		if end >= 0 {
			part, rest = p[:end], p[end+1:]
		}
		l.long = l.long || len(l.rest)+len(part) > lineLimit
		if !l.long {
			l.rest = append(l.rest, part...)
		}
		p = rest
		l.pending += len(part)
		if end < 0 {
			return
		}
		line := l.rest
		if l.long {
			line = nil
		}
		length := l.pending + 1
		l.rest, l.long, l.pending = l.rest[:0], false, 0
		each(line, length)
		if cap(l.rest) > lineKept {
			l.rest = nil
		}
	}
}

// Pending returns the length so far of the unfinished line.
func (l *Lines) Pending() int { return l.pending }
