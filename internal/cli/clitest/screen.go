package clitest

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/creack/pty"
)

// Screen runs one command on a terminal without colours that has this many columns, and returns
// what it prints there.
func (b *Bench) Screen(columns uint16, args ...string) string {
	b.t.Helper()
	screen, terminal, err := pty.Open()
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: columns, Rows: 24}); err != nil {
		b.t.Fatal(err)
	}
	var printed bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&printed, screen) // it fails when the terminal is closed and all is read
	}()
	out, errs, env := b.App.Out, b.App.Err, b.App.Env
	b.App.Out, b.App.Err, b.App.Env = terminal, terminal, append(slices.Clip(env), "NO_COLOR=1")
	b.Run(args...)
	b.App.Out, b.App.Err, b.App.Env = out, errs, env
	_ = terminal.Close()
	<-read
	return strings.ReplaceAll(printed.String(), "\r\n", "\n")
}
