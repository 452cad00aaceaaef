package runner

import "golang.org/x/sys/unix"

const getTermios = unix.TIOCGETA

// longestLine is how many bytes of a line a terminal keeps that makes lines, its end not counted.
const longestLine = 1023
