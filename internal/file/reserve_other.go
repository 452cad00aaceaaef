//go:build !linux

package file

import (
	"errors"
	"os"
)

// Reserve is not supported here.
func Reserve(*os.File, int64) error { return errors.ErrUnsupported }
