package runner

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agency/internal/file"
)

// archiveDir holds the compressed beginnings of the files that grow with a conversation.
const archiveDir = "archive"

// segment is a file of the archive: the bytes of one file from begin up to end.
type segment struct {
	path       string
	begin, end int64
}

// segmentLimit is how much of a file one segment has. A reader has to decompress a segment from its
// beginning.
const segmentLimit = 16 << 20

// segmentName is the format of the name of a segment: the name of its file, begin and end.
const segmentName = "%s-%016d-%016d.gz"

// archive keeps the beginnings of the files that grow with a conversation in compressed form, so that the
// files can be freed there. A file is named by its path in the folder of the attempt.
type archive struct {
	dir   string // of the attempt
	limit int64  // of the segments of one file, in bytes; 0 means unlimited
}

// segments returns the archive of a file, in order and without a gap.
func (a archive) segments(name string) ([]segment, error) {
	entries, err := os.ReadDir(filepath.Join(a.dir, archiveDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into the archive: %w", err)
	}
	var all []segment
	base := filepath.Base(name)
	for _, e := range entries {
		s := segment{path: filepath.Join(a.dir, archiveDir, e.Name())}
		rest, ours := strings.CutPrefix(e.Name(), base)
		if _, err := fmt.Sscanf(rest, "-%d-%d.gz", &s.begin, &s.end); ours && err == nil && e.Name() == fmt.Sprintf(segmentName, base, s.begin, s.end) {
			all = append(all, s)
		}
	}
	return all, nil
}

// add copies the bytes of a file before the offset to into the archive, except those that it has already.
// They are on the disk when add returns. The error is errors.ErrUnsupported where the file system cannot
// free a part of a file.
func (a archive) add(name string, to int64) error {
	all, err := a.segments(name)
	if err != nil {
		return err
	}
	from := int64(0)
	if n := len(all); n > 0 {
		from = all[n-1].end
	}
	if to <= from {
		return nil
	}
	in, err := file.OpenRegular(filepath.Join(a.dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := os.MkdirAll(filepath.Join(a.dir, archiveDir), 0o700); err != nil {
		return err
	}
	for from < to {
		s := segment{begin: from, end: min(from+segmentLimit, to)}
		s.path = filepath.Join(a.dir, archiveDir, fmt.Sprintf(segmentName, filepath.Base(name), s.begin, s.end))
		if err := s.fill(in, filepath.Base(name)+newSuffix); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
		all, from = append(all, s), s.end
		a.trim(all)
	}
	return nil
}

// newSuffix ends the name of a segment that is not complete. Its name begins with that of its file, since
// several files can be archived at the same time.
const newSuffix = ".new"

// fill writes a segment under the name temp, and renames it when it is complete. A temp of a killed wrapper
// is replaced.
func (s segment) fill(from io.ReaderAt, temp string) error {
	temp = filepath.Join(filepath.Dir(s.path), temp)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err = file.Free(f, 1); err == nil { // fails where the file system cannot free parts of files
		err = s.compress(f, from)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return file.SyncFolder(filepath.Dir(s.path))
}

func (s segment) compress(to io.Writer, from io.ReaderAt) error {
	out, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.NewSectionReader(from, s.begin, s.end-s.begin))
	if err == nil && n != s.end-s.begin {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, out.Close())
}

// trim removes the oldest segments of a file, so that the others take no more than the limit.
func (a archive) trim(all []segment) {
	size := int64(0)
	for i := len(all) - 1; i >= 0 && a.limit > 0; i-- {
		if info, err := os.Lstat(all[i].path); err == nil {
			size += info.Size()
		}
		if size > a.limit {
			_ = os.Remove(all[i].path)
		}
	}
}

// free frees on the disk the bytes of a file before the offset to. The archive has them.
func (a archive) free(name string, to int64) error {
	f, err := os.OpenFile(filepath.Join(a.dir, name), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil || to == 0 {
		return err
	}
	return errors.Join(file.Free(f, to), f.Close())
}

// open opens a segment at an offset of its file.
func (s segment) open(offset int64) (io.ReadCloser, error) {
	f, err := file.OpenRegular(s.path)
	if err != nil {
		return nil, err
	}
	in, err := gzip.NewReader(f)
	if err == nil {
		_, err = io.CopyN(io.Discard, in, offset-s.begin)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", filepath.Base(s.path), err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{in, f}, nil
}
