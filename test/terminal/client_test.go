package terminal_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"agency/test/fixture"
)

// client is a program in a terminal outside of tmux, and its output byte for byte.
type client struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File
	exited   chan struct{}
	ended    chan struct{} // it has exited, and nothing else holds its terminal

	mu  sync.Mutex
	out bytes.Buffer
}

// agencyIn runs an agency command in a terminal of the given size.
func agencyIn(t *testing.T, f *fixture.Fixture, columns, rows uint16, args ...string) *client {
	t.Helper()
	return inTerminal(t, f, columns, rows, filepath.Join(bin, "agency"), args...)
}

// inTerminal runs a program in a terminal of the given size.
func inTerminal(t *testing.T, f *fixture.Fixture, columns, rows uint16, program string, args ...string) *client {
	t.Helper()
	c := &client{t: t, cmd: exec.Command(program, args...), exited: make(chan struct{}), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env = f.Repo, f.Env
	var err error
	if c.terminal, err = pty.StartWithSize(c.cmd, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		piece := make([]byte, 32<<10)
		for {
			n, err := c.terminal.Read(piece)
			c.mu.Lock()
			c.out.Write(piece[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
		close(c.exited)
		<-read
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		select {
		case <-c.ended:
		case <-time.After(timeout):
			t.Errorf("after the end of %q others hold its terminal: %s\nit shows %s", c.cmd.Args, c.holders(), c.state())
		}
		_ = c.terminal.Close()
	})
	return c
}

// types sends bytes as the terminal does for keys.
func (c *client) types(keys string) {
	c.t.Helper()
	if _, err := c.terminal.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// resize changes the size of the terminal.
func (c *client) resize(columns, rows uint16) {
	c.t.Helper()
	if err := pty.Setsize(c.terminal, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		c.t.Fatal(err)
	}
}

// wrote returns all output so far.
func (c *client) wrote() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// state returns the output so far, and how the program has exited.
func (c *client) state() string {
	out := strconv.Quote(c.wrote())
	select {
	case <-c.exited:
		return out + "; the program has exited: " + c.cmd.ProcessState.String()
	default:
		return out
	}
}

// holders returns the processes that have the terminal open.
func (c *client) holders() string {
	found := ""
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range files {
		if at, err := os.Readlink(path); err != nil || at != c.cmd.Stdin.(*os.File).Name() {
			continue
		}
		process := filepath.Dir(filepath.Dir(path))
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		status, _ := os.ReadFile(filepath.Join(process, "status"))
		wchan, _ := os.ReadFile(filepath.Join(process, "wchan"))
		found += fmt.Sprintf("\n%s: %q in %s\n%s", path, line, wchan, status)
	}
	return found
}

// shows waits until the output contains a text.
func (c *client) shows(text string) {
	c.t.Helper()
	await(c.t, strconv.Quote(text)+" is shown", func() (bool, string) {
		return strings.Contains(c.wrote(), text), c.state()
	})
}

// ends waits for the program's end and checks its exit status.
func (c *client) ends(status int) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(timeout):
		c.t.Fatalf("the program has not ended: %q", c.wrote())
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.t.Errorf("exit status %d, want %d: %q", got, status, c.wrote())
	}
}
