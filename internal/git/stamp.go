package git

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// fileStamps returns a hash of what the file system says of a folder and of each file and folder
// below it. A program cannot set the time of a file's last change; for a file with several names
// that time does not count, because a name may come or go elsewhere. Folders are read at the same
// time, as many as there are processors.
func fileStamps(dir string) (string, error) {
	s := stamper{free: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}
	var top unix.Stat_t
	if err := unix.Lstat(dir, &top); err != nil {
		return "", &fs.PathError{Op: "look at", Path: dir, Err: err}
	}
	below, err := s.below(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	stamp(sum, "", &top)
	sum.Write(below)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stamper reads folders in goroutines of their own while free takes one.
type stamper struct{ free chan struct{} }

// below returns a hash of all that is in a folder.
func (s *stamper) below(dir string) ([]byte, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, strings.Compare)
	sum, folders := sha256.New(), []string{}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, &fs.PathError{Op: "look at", Path: filepath.Join(dir, name), Err: err}
		}
		stamp(sum, name, &st)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			folders = append(folders, filepath.Join(dir, name))
		}
	}
	hashes, errs := make([][]byte, len(folders)), make([]error, len(folders))
	var all sync.WaitGroup
	for i, folder := range folders {
		read := func() { hashes[i], errs[i] = s.below(folder) }
		select {
		case s.free <- struct{}{}:
			all.Go(func() { defer func() { <-s.free }(); read() })
		default:
			read()
		}
	}
	all.Wait()
	for i := range folders {
		if errs[i] != nil {
			return nil, errs[i]
		}
		sum.Write(hashes[i])
	}
	return sum.Sum(nil), nil
}

// stamp adds a name, and what the file system reports about it.
func stamp(sum hash.Hash, name string, s *unix.Stat_t) {
	if s.Mode&unix.S_IFMT != unix.S_IFDIR && s.Nlink > 1 {
		s.Ctim = unix.Timespec{}
	}
	text := append(make([]byte, 0, 256), name...)
	text = append(text, 0)
	for _, n := range []uint64{uint64(s.Mode), s.Ino, uint64(s.Size), uint64(s.Uid), uint64(s.Mtim.Nano()), uint64(s.Ctim.Nano())} {
		text = binary.LittleEndian.AppendUint64(text, n)
	}
	_, _ = sum.Write(text)
}
