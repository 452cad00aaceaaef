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
