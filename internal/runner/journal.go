package runner

import "io"

// journal writes lines to a file. When the disk took only a part of one, the next line ends it so that
// it is no JSON: what it said never reached the agent.
type journal struct {
	to   io.Writer
	torn bool // the file ends within a line
}

func (j *journal) add(line []byte) error {
	line = append(line, '\n')
	if j.torn {
		line = append([]byte("#\n"), line...)
	}
	n, err := j.to.Write(line)
	if n > 0 {
		j.torn = err != nil
	}
	return err
}
