//go:build !linux

package file

import (
	"errors"
	"os"
)

// Free is not supported here.
func Free(*os.File, int64) error { return errors.ErrUnsupported }
