package runner

import "io"

// journal writes lines of JSON to a file. When the disk took only a part of a line, the next line first ends
// that part so that it is not valid JSON: the agent never got that message.
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
