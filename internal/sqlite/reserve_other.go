//go:build !linux

package sqlite

import "errors"

// reserve is not supported here.
func reserve(string, int64) error { return errors.ErrUnsupported }
