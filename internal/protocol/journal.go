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
	// IntentFile holds what agency was about to write to the agent: each line was there before the
	// agent could see it.
	IntentFile = "intent.jsonl"
)

// Intent is one line of IntentFile.
type Intent struct {
	At time.Time `json:"at"`
	agency.Saying
	Frame string `json:"frame"` // what is written
	// Wire is how many bytes had come from the agent.
	Wire int64 `json:"wire"`
}

// ParseIntents reads an intent file. A torn last line was never written to the agent, and is left
// out.
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
	pending int  // of the line that rest begins
	long    bool // the line is too long; skip to its end
}

// lineLimit is the longest line that is read, in bytes.
const lineLimit = 16 << 20

// lineKept is how much memory is kept for the next lines.
const lineKept = 256 << 10

// Add calls each with every complete line so far and the length that it had in the stream; nil
// stands for one that was too long. each must not keep the line.
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

// Pending returns how many bytes of an unfinished line came.
func (l *Lines) Pending() int { return l.pending }
