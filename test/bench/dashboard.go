package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/creack/pty"
)

// dashboard is agency tui, or a peer's screen, on a terminal that this program reads.
type dashboard struct {
	cmd    *exec.Cmd
	tty    *os.File
	began  time.Time
	chunks chan chunk
	cancel context.CancelFunc
}

// chunk is what one read of the terminal gave.
type chunk struct {
	text []byte
	at   time.Time
}

// openDashboard starts agency tui. The caller closes it.
func openDashboard(ctx context.Context, w *world, repo string, env ...string) (*dashboard, error) {
	return openFace(ctx, repo, append(slices.Clip(w.env), env...), w.agency, "tui")
}

// openFace starts a program on a terminal. The caller closes it.
func openFace(ctx context.Context, dir string, env []string, argv ...string) (*dashboard, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(slices.Clip(env), "TERM=xterm-256color")
	d := &dashboard{cmd: cmd, began: time.Now(), chunks: make(chan chunk, 1<<12), cancel: cancel}
	var err error
	if d.tty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: tuiRows, Cols: tuiColumns}); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(d.chunks)
		for {
			buf := make([]byte, 1<<16)
			n, err := d.tty.Read(buf)
			if err != nil {
				return // it ended
			}
			d.chunks <- chunk{buf[:n], time.Now()}
			d.reply(buf[:n])
		}
	}()
	return d, nil
}

// reply answers what programs ask a terminal when they start: its colours, and where the cursor is.
// Some wait for it for seconds.
func (d *dashboard) reply(text []byte) {
	for _, q := range []struct{ question, answer string }{
		{"\x1b]10;?", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"},
		{"\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"},
		{"\x1b[6n", "\x1b[1;1R"},
	} {
		if bytes.Contains(text, []byte(q.question)) {
			_ = d.press(q.answer) // to one that has ended
		}
	}
}

func (d *dashboard) close() {
	d.cancel()
	_ = d.cmd.Wait() // it was killed
	_ = d.tty.Close()
	for range d.chunks {
		continue
	}
}

func (d *dashboard) press(keys string) error {
	_, err := d.tty.WriteString(keys)
	return err
}

// until returns when a text appears that the dashboard draws in one piece.
func (d *dashboard) until(ctx context.Context, text string) (time.Time, error) {
	const limit = 30 * time.Second
	timeout := time.After(limit)
	seen := []byte{}
	for !bytes.Contains(seen, []byte(text)) {
		select {
		case c, ok := <-d.chunks:
			if !ok {
				return time.Time{}, fmt.Errorf("%s ended before it showed %q; it showed %q", d.cmd, text, seen)
			}
			if seen = append(seen, c.text...); bytes.Contains(seen, []byte(text)) {
				return c.at, nil
			}
		case <-timeout:
			return time.Time{}, fmt.Errorf("%s did not show %q within %s; it showed %q", d.cmd, text, limit, seen)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	return time.Now(), nil
}

// quiet reads until nothing has come for a time. It returns when the first piece came, and how many
// bytes came in all.
func (d *dashboard) quiet(ctx context.Context, still time.Duration) (first time.Time, size int, err error) {
	for {
		select {
		case c, ok := <-d.chunks:
			if !ok {
				return first, size, fmt.Errorf("%s ended", d.cmd)
			}
			if size == 0 {
				first = c.at
			}
			size += len(c.text)
		case <-time.After(still):
			return first, size, nil
		case <-ctx.Done():
			return first, size, ctx.Err()
		}
	}
}

// during returns how many bytes come during a time.
func (d *dashboard) during(ctx context.Context, window time.Duration) (int, error) {
	over, size := time.After(window), 0
	for {
		select {
		case c, ok := <-d.chunks:
			if !ok {
				return size, fmt.Errorf("%s ended", d.cmd)
			}
			size += len(c.text)
		case <-over:
			return size, nil
		case <-ctx.Done():
			return size, ctx.Err()
		}
	}
}
