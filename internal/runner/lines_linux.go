package runner

import "golang.org/x/sys/unix"

const getTermios = unix.TCGETS

// getUnread asks for the number of bytes that wait to be read.
const getUnread = unix.TIOCINQ

// longestLine is how many bytes of a line a terminal in line mode keeps, without its end.
const longestLine = 4095
