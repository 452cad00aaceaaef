package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/protocol"
)

// checkpointFile holds all that a wrapper knows of a conversation, for the next one, which replays only
// what the journal has after it.
const checkpointFile = "checkpoint.json"

// rotateEvery is after how many bytes the journal of a conversation is rotated, and the error output of
// the agent. A wrapper that adopts replays hardly more than that.
const rotateEvery = 4 << 20

// checkpoint is the content of checkpointFile. The zero value is the beginning of a conversation.
type checkpoint struct {
	Wire    int64           `json:"wire"`    // how much of the wire is in it
	Intents int64           `json:"intents"` // likewise
	Kept    int64           `json:"kept"`    // up to where of the wire the evidence is kept
	Log     int64           `json:"log"`     // how long the readable log is
	Lost    int64           `json:"lost"`    // of that, bytes that the disk did not take
	Talk    json.RawMessage `json:"talk"`
}

// readCheckpoint returns the newest checkpoint of an attempt.
func readCheckpoint(attemptDir string) (*checkpoint, error) {
	c := &checkpoint{}
	data, err := file.ReadRegular(filepath.Join(attemptDir, checkpointFile), journalLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, c)
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of the conversation: %w", err)
	}
	return c, nil
}

// rotateWhenDue begins to rotate the journal when enough was added to it. The caller holds the lock.
func (s *speech) rotateWhenDue() {
	length := s.offset
	intents, err := s.intents.Stat()
	if err == nil {
		length += intents.Size()
	}
	if err != nil || s.turning || length-s.rotated < rotateEvery {
		return
	}
	s.turning, s.rotated = true, length
	go s.rotate(s.offset, intents.Size())
}

// rotate takes the beginning of the journal into the archive, makes a checkpoint, and frees on the disk
// what neither replays any more. A wrapper that is killed in between leaves an archive that has more
// than the checkpoint, or files that have more than is needed; the next rotation continues from there.
// On a full disk, it comes again later.
func (s *speech) rotate(wire, intents int64) {
	a := archive{dir: s.launch.AttemptDir, limit: s.launch.LogBytes}
	archived := errors.Join(a.add(protocol.WireFile, wire), a.add(protocol.IntentFile, intents)) == nil
	killpoint.At("speech.archived")
	err := s.writeCheckpoint()
	killpoint.At("speech.checkpointed")
	if archived && err == nil {
		_ = errors.Join(a.free(protocol.WireFile, wire), a.free(protocol.IntentFile, intents)) // or the next time
	}
	killpoint.At("speech.freed")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turning = false
}

// writeCheckpoint keeps what is known now.
func (s *speech) writeCheckpoint() error {
	s.mu.Lock()
	c := checkpoint{Wire: s.offset, Kept: s.kept}
	intents, err := s.intents.Stat()
	if err == nil {
		c.Intents = intents.Size()
		c.Talk, err = s.talk.Memory()
	}
	c.Log, c.Lost = s.out.logs.position()
	s.mu.Unlock()
	var data []byte
	if err == nil {
		data, err = json.Marshal(c)
	}
	if err != nil {
		return err
	}
	return file.WriteAtomic(filepath.Join(s.launch.AttemptDir, checkpointFile), data)
}

// shownBefore is how much of what came before a checkpoint the pane of the next wrapper shows.
const shownBefore = 64 << 10

// showBefore shows in the pane what the readable log ends with at a checkpoint.
func (w *wrapper) showBefore(from *checkpoint) {
	if from.Log == 0 {
		return
	}
	tail, _ := Tail(w.launch.AttemptDir, "runner", shownBefore)
	if from.Log > shownBefore {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
		printNote(w.stdout, "agency logs "+string(w.launch.RunID)+" has what came before")
	}
	w.out.pane.show(tail)
}
