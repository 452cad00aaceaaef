package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agency"
)

// Bell rings the terminals that users are attached to.
type Bell struct {
	name      string
	terminals func(ctx context.Context) ([]string, error)
}

// NewBell returns a channel that rings the terminals whose paths it asks for each time.
func NewBell(name string, terminals func(ctx context.Context) ([]string, error)) *Bell {
	return &Bell{name: name, terminals: terminals}
}

// Name implements Channel.
func (b *Bell) Name() string { return b.name }

// ringTime bounds the wait for a terminal that accepts nothing, as after Ctrl-S.
const ringTime = time.Second

// Send implements Channel. One terminal that rings is a success. Without a terminal it gives up: a
// bell does not say what it rings for, and would only confuse when late.
func (b *Bell) Send(ctx context.Context, _ *agency.Notice) error {
	paths, err := b.terminals(ctx)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return final{errors.New("no terminal is attached to the tmux server")}
	}
	rung := false
	for _, path := range paths {
		if ringErr := ring(path); ringErr != nil {
			err = ringErr
		} else {
			rung = true
		}
	}
	if rung {
		return nil
	}
	return final{err}
}

func ring(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not a terminal", path)
	}
	// Not blocking, so that the deadline holds.
	tty, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = tty.Close() }()
	info, err := tty.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeCharDevice == 0 {
		return fmt.Errorf("%q is not a terminal", path)
	}
	// Where terminals have no deadlines, a write that would wait fails at once.
	if err := tty.SetWriteDeadline(time.Now().Add(ringTime)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return err
	}
	_, err = tty.WriteString("\a")
	return err
}
