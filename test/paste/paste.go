// Package paste pastes the blocks of a page of the documentation into a shell, one after the other,
// and compares what they print with what the page says.
package paste

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the commands of a page print into it")

// Page is a page with blocks of commands, and of what they print.
type Page struct {
	Path string
	Dir  string            // the folder that the page uses, which must be a name of its own
	Skip []string          // beginnings of the blocks that a test does in its own way
	Env  map[string]string // of the shell
	Bin  string            // the folder of agency's program
}

// Check pastes the blocks of a page into a shell, with a folder of the test in the place of the
// page's. prepare gets it before the first block. At the end the agency and tmux of that folder are
// stopped, and it is removed.
func (p *Page) Check(t *testing.T, prepare func(dir string)) {
	t.Helper()
	data, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "tour") // short, for the paths of sockets
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "t")
	if err := os.Symlink(p.Bin, filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	shell := p.start(t, root)
	t.Cleanup(func() {
		shell.block("agency daemon stop; tmux -S " + dir + "/tmux kill-server; cd /")
		_ = os.RemoveAll(root)
	})
	prepare(dir)
	doc := blocks.ReplaceAllStringFunc(string(data), func(found string) string {
		parts := blocks.FindStringSubmatch(found)
		commands, want := parts[1], parts[2]
		for _, begin := range p.Skip {
			if strings.HasPrefix(commands, begin) {
				return found
			}
		}
		got := shell.see(strings.ReplaceAll(commands, p.Dir, dir), strings.ReplaceAll(want, p.Dir, dir))
		got = strings.ReplaceAll(strings.ReplaceAll(got, dir, p.Dir), "\r", "") // as a terminal shows it
		if diff := cmp.Diff(masked(want), masked(got)); diff != "" && !*update {
			t.Errorf("%s below %q (-page +printed; go test -run Tour -update writes it):\n%s", p.Path, commands, diff)
		}
		if got == "" {
			return found
		}
		return "```sh\n" + commands + "```\n\n```text\n" + got + "```\n"
	})
	if *update {
		if err := os.WriteFile(p.Path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// blocks matches commands and, if the page has it, their output.
var blocks = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?")

// masks matches what differs from one machine and moment to the next.
var masks = regexp.MustCompile(`(?m)^[0-9A-Z]{6}\b|[0-9A-Z]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|-[0-9a-f]{4}\b|\b[0-9a-f]{7,40}\b|\b[0-9]+[smhd]( ?[0-9]+[smhd])?\b|[0-9]+|not yet|(/usr)?/bin/sh| +`)

func masked(text string) string {
	return masks.ReplaceAllStringFunc(text, func(found string) string {
		if strings.TrimSpace(found) == "" {
			return " "
		}
		return "_"
	})
}

// shell is the terminal into which the blocks are pasted.
type shell struct {
	t      *testing.T
	dir    string
	input  io.Writer
	output *bufio.Reader
	blocks int
}

func (p *Page) start(t *testing.T, dir string) *shell {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C.UTF-8"}
	for name, value := range p.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.CloseWithError(cmd.Wait())
	}()
	t.Cleanup(func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, output)
		cancel()
	})
	return &shell{t: t, dir: dir, input: input, output: bufio.NewReader(output)}
}

// block runs commands and returns what they print.
func (s *shell) block(commands string) string {
	s.t.Helper()
	s.blocks++
	file, end := filepath.Join(s.dir, "block"), fmt.Sprintf("end of block %d\n", s.blocks)
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.input, ". %s </dev/null\nprintf '%%s' '%s'\n", file, end); err != nil {
		s.t.Fatal(err)
	}
	var printed strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v after %q", err, printed.String())
		}
		if rest, ok := strings.CutSuffix(line, end); ok {
			return printed.String() + rest
		}
		printed.WriteString(line)
	}
}

// see runs commands. A last command that only looks is repeated until the output is what a reader
// would see a moment later.
func (s *shell) see(commands, want string) string {
	s.t.Helper()
	begin := strings.LastIndex(strings.TrimSuffix(commands, "\n"), "\n") + 1
	if !regexp.MustCompile(`^agency (alerts|explain|logs|show|session show)\b`).MatchString(commands[begin:]) {
		return s.block(commands)
	}
	before := ""
	if begin > 0 {
		before = s.block(commands[:begin])
	}
	if *update {
		time.Sleep(2 * time.Second) // no file event announces the new text
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		got := before + s.block(commands[begin:])
		if *update || masked(got) == masked(want) || time.Now().After(deadline) {
			return got
		}
		time.Sleep(50 * time.Millisecond)
	}
}
