package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/file"
	"agency/internal/protocol"
)

// createWire creates the file into which the agent writes its messages, before the logs exist. From this
// file, readers of the error output know that the agent writes that output itself.
func createWire(attemptDir string) error {
	f, err := os.OpenFile(filepath.Join(attemptDir, protocol.WireFile), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("open the runner's files: %w", err)
	}
	return f.Close()
}

// startProtocol starts the runner with its protocol on its files.
func (w *wrapper) startProtocol() (int, error) {
	if err := unix.Access(w.argv[0], unix.X_OK); err != nil {
		return 0, explain(err, &w.launch)
	}
	dir := w.launch.AttemptDir
	if err := unix.Mkfifo(filepath.Join(dir, fifoFile), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf("make the runner's input: %w", err)
	}
	var files [3]*os.File
	for i, open := range []struct {
		name  string
		flags int
	}{{fifoFile, os.O_RDWR}, {protocol.WireFile, os.O_WRONLY}, {stderrFile, os.O_WRONLY}} {
		if i > 0 {
			open.flags |= os.O_APPEND | os.O_CREATE
		}
		f, err := os.OpenFile(filepath.Join(dir, open.name), open.flags|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return 0, fmt.Errorf("open the runner's files: %w", err)
		}
		defer func() { _ = f.Close() }()
		files[i] = f
	}
	self, err := os.Executable()
	if err == nil {
		err = writeAdopt(w.launch)
	}
	if err != nil {
		return 0, err
	}
	w.out.pane = newPane(w.stdout)
	if err = w.openSpeech(&checkpoint{}); err != nil {
		return 0, err
	}
	w.argv = slices.Concat([]string{self, "hold", dir}, w.argv)
	return w.fork(files, append(w.environ(), heldToken+"="+w.launch.Token), false)
}

// openSpeech opens the conversation with the runner after a checkpoint, and the ways by which the user and
// guests take part in it.
func (w *wrapper) openSpeech(from *checkpoint) (err error) {
	if w.speech, err = openSpeech(&w.launch, w.speaker, w.out, from); err != nil {
		return err
	}
	w.doors = newDoors(w.speech, w.family)
	w.console = &console{speech: w.speech, stdin: w.stdin, stdout: w.stdout}
	return nil
}

// awaitSpeech waits until the runner runs, and returns the conversation with it. The error has the code.
func (w *wrapper) awaitSpeech(code agency.Code) (*speech, error) {
	if w.launch.Mode != agency.ModeProtocol {
		return nil, agency.Errorf(code, "the run %s does not speak a protocol", w.launch.RunID)
	}
	if err := w.awaitStart(code); err != nil {
		return nil, err
	}
	return w.speech, nil
}

// converse begins the conversation with the runner, lets the guests of an earlier wrapper come back, and
// says what the user types in the pane. When the conversation cannot begin, it ends the runner.
func (w *wrapper) converse() {
	failed := w.speech.begin()
	switch {
	case w.speech.ended():
		return
	case failed != nil:
		printNote(w.stdout, "error: "+failed.Words)
		data, _ := json.Marshal(failed)
		_ = file.WriteAtomic(filepath.Join(w.launch.AttemptDir, agency.EndNoteFile), data)
		w.requestStop(agency.EndedByProtocol, false)
		return
	}
	w.doors.reopen()
	w.console.read()
}
