//go:build !linux

package crash_test

import "errors"

func mount(string) error { return errors.ErrUnsupported }

func writable(string, bool) error { return errors.ErrUnsupported }

func unmount(string) {}

func mountFailing(string) error { return errors.ErrUnsupported }

func limitFiles(int, int) (func(), error) { return nil, errors.ErrUnsupported }
