package notify

import "errors"

var (
	Public      = public
	DesktopArgv = desktopArgv
)

func Final(err error) bool {
	_, ok := errors.AsType[final](err)
	return ok
}

// Words returns the words for a failure.
func Words(err error) string { return words(err) }
