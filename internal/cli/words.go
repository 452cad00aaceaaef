package cli

import (
	"errors"
	"fmt"
	"io/fs"
)

// rootCause takes the operation and path off a file error; the caller names them better.
func rootCause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// count is a number and the noun that it counts.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
