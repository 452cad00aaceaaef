package runner

import (
	"fmt"
	"os"
)

// pipeBuffer is the size of a pipe that the wrapper asks the kernel for.
const pipeBuffer = 1 << 20

// startHeadless starts the runner with two pipes, in a session without a terminal.
func (w *wrapper) startHeadless() (int, error) {
	path := w.launch.Stdin
	if path == "" {
		path = os.DevNull
	}
	stdin, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("open the runner's input: %w", err)
	}
	defer func() { _ = stdin.Close() }()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = outWrite.Close() }()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = errWrite.Close() }()
	growPipe(outRead)
	growPipe(errRead)

	w.out.pane = newPane(w.stdout)
	logs, show := w.out.logs, w.out.pane.show
	for f, log := range map[*os.File]*logFile{outRead: logs.stdout, errRead: logs.stderr} {
		observed := w.observer != nil && f == outRead
		err := w.out.add(f, pipeBuffer/4, func(p []byte) {
			logs.write(log, p)
			show(p)
			if observed {
				w.observer.Output(p)
			}
		})
		if err != nil {
			return 0, fmt.Errorf("read the runner's output: %w", err)
		}
	}
	return w.fork([3]*os.File{stdin, outWrite, errWrite}, w.environ(), false)
}
