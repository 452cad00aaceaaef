package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// tailStep is how much of a log is read first to find its last lines.
const tailStep = 64 << 10

// GoToLast makes a log continue with its last lines, as it is now. Where it would continue with fewer, it
// changes nothing. It reads the log from its end, and no more of it than these lines need.
func GoToLast(l Log, lines int) error {
	first := l.Offset()
	end, err := l.end()
	if err != nil || end <= first {
		return err
	}
	at := end
	for step := int64(tailStep); lines > 0 && at > first; step *= 2 {
		before := at
		if err := l.GoTo(max(first, at-step)); err != nil {
			return err
		}
		if at = l.Offset(); at >= before {
			break // the rest was dropped meanwhile
		}
		ends, err := lineEnds(l, min(before, end-1)-at) // no line begins behind the last byte
		if err != nil {
			return err
		}
		if ends >= lines {
			return skipLines(l, at, ends-lines+1)
		}
		lines -= ends
	}
	return l.GoTo(at)
}

// lineEnds counts the ends of lines in the next bytes of a log.
func lineEnds(l Log, span int64) (ends int, err error) {
	buffer := make([]byte, tailStep)
	for span > 0 {
		n, err := l.Read(buffer[:min(span, tailStep)])
		ends += bytes.Count(buffer[:n], []byte{'\n'})
		span -= int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("find the last lines: %w", err)
		}
	}
	return ends, nil
}

// skipLines makes a log continue behind so many ends of lines after an offset.
func skipLines(l Log, at int64, lines int) error {
	if err := l.GoTo(at); err != nil {
		return err
	}
	buffer := make([]byte, tailStep)
	for {
		from := l.Offset()
		n, err := l.Read(buffer)
		for i, b := range buffer[:n] {
			if b == '\n' {
				lines--
			}
			if lines == 0 {
				return l.GoTo(from + int64(i) + 1)
			}
		}
		if errors.Is(err, io.EOF) {
			return l.GoTo(at) // some was dropped meanwhile, and this is what is left
		}
		if err != nil {
			return fmt.Errorf("find the last lines: %w", err)
		}
	}
}
