package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"agency/internal/file"
)

// holdFiles has the copier and all readers open the files, because they may be deleted, or
// descriptors run out, before they are needed. It notes which files they are, and keeps room for
// the log.
func (s *database) holdFiles(ctx context.Context) error {
	var version int
	if err := s.copier.QueryRowContext(ctx, "SELECT user_version FROM pragma_user_version").Scan(&version); err != nil {
		return err
	}
	for range readerConns {
		reader, err := s.readers.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = reader.Close() }() // it goes back to the pool
		if err := reader.QueryRowContext(ctx, "SELECT user_version FROM pragma_user_version").Scan(&version); err != nil {
			return err
		}
	}
	// An index of the log on the disk is another program's, or an earlier agency's. This process
	// has the file to itself.
	if err := os.Remove(s.path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.files = map[string]fs.FileInfo{}
	for _, path := range []string{s.path, s.path + "-wal"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.files[path] = info
	}
	s.KeepRoom()
	return nil
}

// Displaced returns the path of a file of the store that was deleted or replaced since it was
// opened; empty when none was. What is written then is lost with this process. Only a missing file
// proves it; other errors prove nothing.
func (s *database) Displaced() string {
	for path, opened := range s.files {
		named, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(named, opened) {
			return path
		}
	}
	return ""
}

// logRoom is how much of the disk the log has for itself, in bytes: what it needs between two
// checkpoints, and as much again for what is written while the disk is full.
const logRoom = 8 << 20

// KeepRoom reserves room on the disk for the log, which no other program can take, so that an agent
// can be stopped, and its end be recorded, on a full disk. Repeat it until it succeeds; then it
// does nothing.
func (s *database) KeepRoom() {
	s.room.Lock()
	defer s.room.Unlock()
	if s.kept {
		return
	}
	s.noRoom = s.reserve()
	s.kept = s.noRoom == nil
}

func (s *database) reserve() error {
	log, err := os.OpenFile(s.path+"-wal", os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Reserve(log, logRoom), log.Close())
}

// NoRoom returns why the room for the log is not there; nil when it is. errors.ErrUnsupported means
// that the system cannot reserve it.
func (s *database) NoRoom() error {
	s.room.Lock()
	defer s.room.Unlock()
	return s.noRoom
}
