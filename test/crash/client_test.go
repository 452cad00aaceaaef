package crash_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// clientLimit is the longest time that a disturbed command may take.
const clientLimit = 90 * time.Second

// client runs a command, and checks its answer.
func (l *life) client(args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "agency"), args...)
	var out, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.WaitDelay, cmd.Stdout, cmd.Stderr = l.f.Repo, l.f.Env, time.Second, &out, &stderr
	if args[0] == "report" {
		cmd.Dir = l.someWorktree()
	}
	shown, err := make(chan struct{}), error(nil)
	if args[0] == "attach" {
		err = attach(cmd, &out, shown)
	} else {
		close(shown)
		err = cmd.Start()
	}
	if err != nil {
		l.note("agency %q: %v", args, err) // a worktree can be gone
		return
	}
	if has(args, "-f") || has(args, "watch") {
		interrupt := time.AfterFunc(followTime, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
		defer interrupt.Stop()
	}
	begin := time.Now()
	l.mu.Lock()
	l.clients[cmd] = true
	l.mu.Unlock()
	_ = cmd.Wait()
	<-shown
	l.mu.Lock()
	delete(l.clients, cmd)
	l.mu.Unlock()
	l.soak.count(l.soak.ran, args[0])
	said := stderr.String()
	l.note("agency %q: %s after %s: %.300s%.300s", args, cmd.ProcessState, time.Since(begin).Round(time.Millisecond), said, out.String())
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		l.say("agency %q hung", args)
	}
	for _, never := range []string{"panic:", "goroutine ", "E_INTERNAL", "DATA RACE"} {
		if strings.Contains(said, never) {
			l.say("agency %q: %s", args, said)
			break
		}
	}
	if cmd.ProcessState.ExitCode() == 0 {
		l.believe(args, said+out.String())
	}
}

// followTime is how long a client follows or shows output before its user leaves.
const followTime = time.Second

// attach starts a client on a terminal of its own, from which its user detaches a moment later. It
// closes shown when out has everything that the client wrote.
func attach(cmd *exec.Cmd, out io.Writer, shown chan<- struct{}) error {
	cmd.Stdout, cmd.Stderr = nil, nil
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	go func() {
		defer close(shown)
		defer func() { _ = terminal.Close() }()
		leave := time.AfterFunc(followTime, func() { _, _ = terminal.WriteString("\x02d") })
		defer leave.Stop()
		_, _ = io.Copy(out, terminal) // until the client has ended
	}()
	return nil
}

// someWorktree returns the folder of a client's newest run, as the working directory of its agent.
// An agent of a session that asks a question and ends makes its session wait for the user.
func (l *life) someWorktree() string {
	paths, _ := filepath.Glob(filepath.Join(l.f.Data, "worktrees", "*", "r_*"))
	for _, path := range slices.Backward(paths) {
		meta, _ := os.ReadFile(filepath.Join(l.f.Data, "runs", filepath.Base(path), "meta.json"))
		if strings.Contains(string(meta), `"name": "n`) {
			return path
		}
	}
	return l.f.Repo
}

var (
	savedAs    = regexp.MustCompile(`saved its work as (refs/agency/snapshots/\S+?)[,;.]?\s`)
	restoredAs = regexp.MustCompile(`git switch (agency/restored-\S+)`)
)

// believe records the answers that a client got, to check later that they still hold.
func (l *life) believe(args []string, out string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if args[0] == "run" {
		lines := strings.Split(strings.TrimSpace(out), "\n")
		l.made[lines[len(lines)-1]] = true
	}
	for _, match := range savedAs.FindAllStringSubmatch(out, -1) {
		l.saved[match[1]] = true
	}
	for _, match := range restoredAs.FindAllStringSubmatch(out, -1) {
		l.saved["refs/heads/"+match[1]] = true
	}
}
