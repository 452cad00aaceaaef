package runner

import "golang.org/x/sys/unix"

const getTermios = unix.TIOCGETA

// getUnread asks for the number of bytes that wait to be read: FIONREAD, which the package of
// system calls does not name here.
const getUnread = 0x4004667f

// longestLine is how many bytes of a line a terminal in line mode keeps, without its end.
const longestLine = 1023
