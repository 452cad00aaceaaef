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

// archiveDir is where the beginnings of the files are that grow with a conversation, compressed.
const archiveDir = "archive"

// segment is a file of the archive: the bytes of one file from begin up to end.
type segment struct {
	path       string
	begin, end int64
}

// segmentLimit is how much of a file one segment has: whoever reads a part of it reads what is before, too.
const segmentLimit = 16 << 20

// segmentName is the name of a segment: that of its file, begin and end.
const segmentName = "%s-%016d-%016d.gz"

// archive keeps the beginnings of the files that grow with a conversation, so that the disk gets them
// back. A file has a name in the folder of the attempt.
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

// add takes into the archive what a file holds before to, as far as it is not there yet. It is on the
// disk when add returns. Where the file system could not free it in the file, it returns
// errors.ErrUnsupported.
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
	in, err := openRegular(filepath.Join(a.dir, name))
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

// newSuffix ends the name of a segment that is not complete. Each file has one of its own: the error
// output goes into the archive while other files do.
const newSuffix = ".new"

// fill writes a segment, first under the name temp, which the next one of the file replaces. Under its
// own name it is complete.
func (s segment) fill(from io.ReaderAt, temp string) error {
	temp = filepath.Join(filepath.Dir(s.path), temp)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err = file.Free(f, 1); err == nil { // which shows what the file system can
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

// free gives back to the disk what a file holds before to, which the archive has.
func (a archive) free(name string, to int64) error {
	f, err := os.OpenFile(filepath.Join(a.dir, name), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil || to == 0 {
		return err
	}
	return errors.Join(file.Free(f, to), f.Close())
}

// open returns what a segment has from an offset on.
func (s segment) open(offset int64) (io.ReadCloser, error) {
	f, err := openRegular(s.path)
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
