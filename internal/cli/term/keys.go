package term

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Keys reads single keys from a terminal, each on request, so that no read is in progress while
// another program has the terminal.
type Keys struct {
	Pressed chan string // j, enter, ctrl-c ...; closed at the end of the input

	in   *os.File
	was  *term.State
	want chan struct{}
}

// ReadKeys puts a terminal into raw mode and reads its keys, in the background until the process
// ends. It fails if in is not a terminal.
func ReadKeys(in *os.File) (*Keys, error) {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	k := &Keys{Pressed: make(chan string), in: in, was: was, want: make(chan struct{}, 1)}
	go func() {
		defer close(k.Pressed)
		piece := make([]byte, 16)
		var read []byte // several keys arrive together when they were typed fast
		for range k.want {
			if len(read) == 0 {
				n, err := in.Read(piece)
				if err != nil {
					return
				}
				read = piece[:n]
			}
			var key []byte
			key, read = firstKey(read)
			k.Pressed <- keyName(key)
		}
	}()
	return k, nil
}

// firstKey splits terminal input after its first key. Input that begins with an escape is one key.
func firstKey(read []byte) (key, rest []byte) {
	if len(read) == 0 || read[0] == '\x1b' {
		return read, nil
	}
	_, size := utf8.DecodeRune(read)
	return read[:size], read[size:]
}

// keyName returns the name of the key for which a terminal sends piece.
func keyName(piece []byte) string {
	switch text := string(piece); text {
	case "\r", "\n":
		return "enter"
	case "\x03":
		return "ctrl-c"
	case "\x1a":
		return "ctrl-z"
	case "\x1b[A", "\x1bOA":
		return "k"
	case "\x1b[B", "\x1bOB":
		return "j"
	default:
		return text
	}
}

// Next asks for the next key, which comes on Pressed.
func (k *Keys) Next() { k.want <- struct{}{} }

// Release gives the terminal back to other programs, until Take. No key may be requested meanwhile.
func (k *Keys) Release() { _ = term.Restore(int(k.in.Fd()), k.was) }

// Take puts the terminal into raw mode again.
func (k *Keys) Take() { _, _ = term.MakeRaw(int(k.in.Fd())) }

// Suspend gives the terminal back and stops the processes of the command, as ctrl-z does where no
// program reads keys. It returns when they continue, with the terminal taken again. When they
// continue in the background, it reports false and has not taken the terminal. No key may be
// requested meanwhile.
func (k *Keys) Suspend() (foreground bool) {
	k.Release()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	if syscall.Kill(0, syscall.SIGTSTP) == nil {
		select {
		case <-again:
		case <-time.After(suspendWait): // without job control the kernel ignores the stop
		}
	}
	if !Foreground(k.in) {
		return false
	}
	k.Take()
	return true
}

// suspendWait is how long the kernel may take to stop a process that asks for it.
const suspendWait = time.Second

// Foreground reports whether the command may use its terminal: only one of a shell's jobs may. A
// file that is not a terminal belongs to the command alone.
func Foreground(terminal any) bool {
	file, ok := terminal.(*os.File)
	if !ok {
		return true
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err != nil || group == syscall.Getpgrp()
}

// RawWriter writes lines to a terminal in raw mode, which does not return the carriage by itself.
type RawWriter struct{ W io.Writer }

// Write implements io.Writer.
func (r RawWriter) Write(p []byte) (int, error) {
	if _, err := r.W.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Reversed returns a line without its colours, in reverse video.
func Reversed(line string) string { return "\x1b[7m" + SafeText(line) + "\x1b[0m" }
