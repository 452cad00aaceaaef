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

// checkpointFile holds all that a wrapper knows of a conversation. The next wrapper replays only the part of
// the journal after it.
const checkpointFile = "checkpoint.json"

// rotateEvery is after how many bytes the journal of a conversation is rotated, and the error output of
// the agent. A wrapper that adopts replays hardly more than that.
const rotateEvery = 4 << 20

// checkpoint is the content of checkpointFile. The zero value is the beginning of a conversation.
type checkpoint struct {
	Wire    int64           `json:"wire"`    // how many bytes of the wire it covers
	Intents int64           `json:"intents"` // likewise of the intents
	Kept    int64           `json:"kept"`    // the offset in the wire up to which the evidence is kept
	Log     int64           `json:"log"`     // the length of the readable log
	Lost    int64           `json:"lost"`    // bytes of that log that the disk did not take
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
	if err != nil || s.rotates || length-s.rotated < rotateEvery {
		return
	}
	s.rotates, s.rotated = true, length
	go s.rotate(s.offset, intents.Size())
}

// rotate copies the beginning of the journal to the archive, makes a checkpoint, and frees that beginning on
// the disk, since no wrapper replays it any more. A wrapper that is killed meanwhile leaves an archive that
// is ahead of the checkpoint, or files that are longer than they need to be; the next rotation continues
// from there. On a full disk, a later rotation does it.
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
	s.rotates = false
}

// writeCheckpoint writes a checkpoint of the present conversation.
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

// shownBefore is how many bytes of the log before a checkpoint the next wrapper shows in its pane.
const shownBefore = 64 << 10

// showBefore shows in the pane the end of the readable log at a checkpoint.
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
