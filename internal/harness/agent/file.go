package agent

import (
	"bytes"
	"io"
	"os"

	"agency/internal/file"
)

// tailLimit is the most that Tail reads at a time, in bytes.
const tailLimit = 4 << 20

// Tail returns the complete lines after offset, and where they end. A file that became shorter is a
// new one, and read from its end.
func Tail(path string, offset int64) (lines []byte, next int64) {
	f, err := file.OpenRegular(path)
	if err != nil {
		return nil, offset
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == offset {
		return nil, offset
	}
	if info.Size() < offset {
		return nil, info.Size()
	}
	lines, err = io.ReadAll(io.NewSectionReader(f, offset, min(info.Size()-offset, tailLimit)))
	if err != nil {
		return nil, offset
	}
	if end := bytes.LastIndexByte(lines, '\n') + 1; end > 0 || len(lines) < tailLimit {
		return lines[:end], offset + int64(end)
	}
	return nil, offset + tailLimit // a line without an end is skipped piece by piece
}

// SizeOf returns the size of a file now, so that the output of an earlier attempt is not read
// again.
func SizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
