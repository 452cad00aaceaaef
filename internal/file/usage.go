package file

import (
	"context"
	"io/fs"
	"path/filepath"
	"syscall"
)

// blockSize is the unit of Stat_t.Blocks, in bytes.
const blockSize = 512

// Usage returns the disk space that a folder and everything in it takes, in bytes, without
// following links. It leaves out what cannot be read. When ctx ends first, it returns the sum so
// far, with the error of ctx.
func Usage(ctx context.Context, path string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // it is gone, or may not be read
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				total += stat.Blocks * blockSize
			}
		}
		return nil
	})
	return total, err
}
