package script_test

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

var update = flag.Bool("update", false, "write what the commands of docs/tour.md print into it")

const tour, tourDir = "../../docs/tour.md", "/tmp/agency-tour"

// A newcomer pastes the blocks of docs/tour.md one after the other, and gets the output below each.
func TestTour(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(tour)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "tour") // short, for the paths of sockets
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "t")
	if err := os.Symlink(bin, filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	shell := startShell(t, root)
	t.Cleanup(func() {
		shell.block("agency daemon stop; tmux -S " + dir + "/tmux kill-server; cd /")
		_ = os.RemoveAll(root)
	})
	doc := blocks.ReplaceAllStringFunc(string(data), func(found string) string {
		parts := blocks.FindStringSubmatch(found)
		commands, want := parts[1], parts[2]
		if commands == "make build\n" {
			return found
		}
		got := shell.see(strings.ReplaceAll(commands, tourDir, dir), strings.ReplaceAll(want, tourDir, dir))
		got = strings.ReplaceAll(strings.ReplaceAll(got, dir, tourDir), "\r", "") // as a terminal shows it
		if diff := cmp.Diff(masked(want), masked(got)); diff != "" && !*update {
			t.Errorf("%s below %q (-page +printed; go test ./test/script -run Tour -update writes it):\n%s", tour, commands, diff)
		}
		if got == "" {
			return found
		}
		return "```sh\n" + commands + "```\n\n```text\n" + got + "```\n"
	})
	if *update {
		if err := os.WriteFile(tour, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// blocks matches commands and, if the page has it, their output.
var blocks = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?")

// masks matches what differs from one machine and moment to the next.
var masks = regexp.MustCompile(`(?m)^[0-9A-Z]{6}\b|[0-9A-Z]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|-[0-9a-f]{4}\b|\b[0-9a-f]{7,40}\b|[0-9]+|not yet|(/usr)?/bin/sh| +`)

func masked(text string) string {
	return masks.ReplaceAllStringFunc(text, func(found string) string {
		if strings.TrimSpace(found) == "" {
			return " "
		}
		return "_"
	})
}

// tourShell is the terminal into which the blocks are pasted.
type tourShell struct {
	t      *testing.T
	dir    string
	input  io.Writer
	output *bufio.Reader
	blocks int
}

func startShell(t *testing.T, dir string) *tourShell {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C.UTF-8"}
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
	return &tourShell{t: t, dir: dir, input: input, output: bufio.NewReader(output)}
}

// block runs commands and returns what they print.
func (s *tourShell) block(commands string) string {
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
func (s *tourShell) see(commands, want string) string {
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
