package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// The files of an attempt.
const (
	aliveFile = "alive"
	// heartbeatFile has a folder of its own: the daemon watches the attempt's, and would wake at each
	// beat.
	heartbeatFile = "wrapper/heartbeat"
	startFile     = "started.json"
	exitFile      = "runner_done.json"
	exitCodeFile  = "exit_code.txt"
	logsDir       = "logs"
)

const (
	recordLimit = 64 << 10
	launchLimit = 16 << 20
)

// readLaunch reads and deletes the launch file: afterwards no file contains the token and the
// environment.
func readLaunch(path string) (agency.Launch, error) {
	var launch agency.Launch
	info, err := os.Lstat(path)
	if err != nil {
		return launch, fmt.Errorf("read the launch file: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 || !ok || int(stat.Uid) != os.Getuid() {
		return launch, fmt.Errorf("read the launch file %s: it is not a file of mode 0600 of ours", path)
	}
	data, err := file.ReadRegular(path, launchLimit)
	if err != nil {
		return launch, fmt.Errorf("read the launch file: %w", err)
	}
	if !isAdopt(path) {
		if err := os.Remove(path); err != nil {
			return launch, fmt.Errorf("delete the launch file: %w", err)
		}
	}
	if err := decodeStrict(data, &launch); err != nil {
		return launch, fmt.Errorf("read the launch file %s: %w", path, err)
	}
	if len(launch.Argv) == 0 || launch.AttemptDir == "" {
		return launch, fmt.Errorf("read the launch file %s: it names no program or no attempt folder", path)
	}
	return launch, nil
}

// readEndNote returns the note about the end of a runner that its container or its conversation left; empty
// without one.
func readEndNote(attemptDir string) (note agency.EndNote) {
	data, err := file.ReadRegular(filepath.Join(attemptDir, agency.EndNoteFile), recordLimit)
	if err != nil || decodeStrict(data, &note) != nil {
		return agency.EndNote{}
	}
	return note
}

// takeLock takes the kernel lock that shows that the attempt's wrapper lives. The wrapper holds it
// until its death; it is not inherited. Locked tests it with a shared lock for a moment, so
// takeLock retries when it is taken.
func takeLock(attemptDir string) (*os.File, error) {
	path := filepath.Join(attemptDir, aliveFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for try := 0; ; try++ {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || try == 50 {
			_ = f.Close()
			return nil, fmt.Errorf("another wrapper holds the lock %s: %w", path, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Locked reports whether the wrapper of the attempt lives: whether a process holds the kernel lock
// on its alive file. It creates nothing and does not wait. A missing file is not locked.
func Locked(attemptDir string) (bool, error) {
	fd, err := unix.Open(filepath.Join(attemptDir, aliveFile), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("open the lock in %s: %w", attemptDir, err)
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) // closing releases it
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the lock in %s: %w", attemptDir, err)
	}
	return false, nil
}

// ReadStart reads the record of a runner's start. It returns nil without an error when there is
// none yet; a record that is torn, too large, not a regular file, or of another format is an error.
func ReadStart(attemptDir string) (*agency.Start, error) {
	return readRecord[agency.Start](filepath.Join(attemptDir, startFile))
}

// ReadExit reads the record of a runner's end. It returns nil without an error when there is none;
// a record that is torn, too large, not a regular file, or of another format is an error.
func ReadExit(attemptDir string) (*agency.Exit, error) {
	return readRecord[agency.Exit](filepath.Join(attemptDir, exitFile))
}

func readRecord[T any](path string) (*T, error) {
	data, err := file.ReadRegular(path, recordLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read record: %w", err)
	}
	record := new(T)
	if err := decodeStrict(data, record); err != nil {
		return nil, fmt.Errorf("read record %s: %w", path, err)
	}
	return record, nil
}

// decodeStrict parses exactly one JSON object without unknown keys.
func decodeStrict(data []byte, into any) error {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// writeStart records the start so that it survives the death of the daemon and of the wrapper.
func writeStart(attemptDir string, start *agency.Start) error {
	data, err := json.MarshalIndent(start, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the start record: %w", err)
	}
	return file.WriteAtomic(filepath.Join(attemptDir, startFile), append(data, '\n'))
}

// writeExit makes the end durable. The record that decides comes last.
func writeExit(attemptDir string, exit *agency.Exit) error {
	data, err := json.MarshalIndent(exit, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the exit record: %w", err)
	}
	code := fmt.Appendf(nil, "%d\n", exit.ExitCode)
	if err := writeReserved(filepath.Join(attemptDir, exitCodeFile), code); err != nil {
		return err
	}
	killpoint.At("wrapper.code")
	return writeReserved(filepath.Join(attemptDir, exitFile), append(data, '\n'))
}

// reserved is the suffix of a file that reserves the disk space for another file.
const reserved = ".reserved"

// reserve reserves the disk space that the files need. If it fails, they are written like any other
// file.
func reserve(attemptDir string, names ...string) {
	for _, name := range names {
		_ = os.WriteFile(filepath.Join(attemptDir, name+reserved), make([]byte, 1<<12), 0o600)
	}
}

// writeReserved is file.WriteDurable that needs no disk space if it was reserved.
func writeReserved(path string, data []byte) error {
	f, err := os.OpenFile(path+reserved, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return file.WriteDurable(path, data)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, file.WriteDurable(path, data))
	}
	if err := os.Rename(path+reserved, path); err != nil {
		return err
	}
	return file.SyncFolder(filepath.Dir(path))
}

// touchHeartbeat updates the time of the heartbeat file, for readers who cannot see the lock. They
// also notice when it stops, so an error is not reported.
func touchHeartbeat(attemptDir string) {
	path := filepath.Join(attemptDir, heartbeatFile)
	now := killpoint.Now()
	if errors.Is(os.Chtimes(path, now, now), fs.ErrNotExist) {
		_ = os.Mkdir(filepath.Dir(path), 0o700)
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600); err == nil {
			_ = f.Close()
		}
	}
}

// newExit returns an exit record with the present time.
func (w *wrapper) newExit() *agency.Exit {
	return &agency.Exit{
		SchemaVersion: 1,
		RunID:         w.launch.RunID,
		Attempt:       w.launch.Attempt,
		RunnerKind:    w.launch.RunnerKind,
		StartedAt:     w.start.StartedAt,
		EndedAt:       killpoint.Now().UTC(),
	}
}
