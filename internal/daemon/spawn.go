package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/duration"
	"agency/internal/socket"
)

// spawnTimeout bounds the start of a daemon, with migrations and reconciliation.
const spawnTimeout = 60 * time.Second

// readyFD is the descriptor on which a spawned daemon reports: the first after the standard ones.
const readyFD = 3

// Spawn starts a daemon in the background for a client that found none. Of several callers at once,
// one starts it and the others wait. When Spawn returns nil, a daemon answers on the socket. env is
// the caller's environment.
func Spawn(ctx context.Context, cfg *config.Config, exe, configPath string, env []string) error {
	ctx, cancel := context.WithTimeout(ctx, spawnTimeout)
	defer cancel()
	if err := makeFolders(cfg); err != nil {
		return err
	}
	gate := flock.New(filepath.Join(cfg.Home, "agencyd.start.lock"), flock.SetPermissions(0o600))
	if ok, err := gate.TryLockContext(ctx, 10*time.Millisecond); err != nil || !ok {
		return startError("another command has been starting it for too long: %w", err).WithHint("agency daemon logs")
	}
	defer func() { _ = gate.Unlock() }()
	if answers(ctx, cfg.Socket) {
		return nil
	}
	err := spawn(ctx, cfg, exe, configPath, env)
	if err != nil && answers(ctx, cfg.Socket) {
		return nil // another daemon was started by hand at the same moment
	}
	return err
}

// answers reports whether a process of this user listens on a socket.
func answers(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := socket.Dial(ctx, path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func spawn(ctx context.Context, cfg *config.Config, exe, configPath string, env []string) error {
	log, err := os.OpenFile(LogPath(cfg.Home), os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return startError("open its log: %w", err)
	}
	defer func() { _ = log.Close() }()
	ready, report, err := os.Pipe()
	if err != nil {
		return startError("make a pipe: %w", err)
	}
	defer func() { _ = ready.Close() }()
	argv := []string{"daemon", "run"}
	if configPath != "" {
		argv = append(argv, "--config", configPath)
	}
	// The daemon outlives the command that started it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), exe, argv...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(env, cfg)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keepFiles()
	err = cmd.Start()
	_ = report.Close()
	if err != nil {
		return startError("%w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	if err = awaitReady(ctx, ready); err != nil {
		select {
		case <-ended: // a caller that gets the error finds no process left
		case <-ctx.Done():
			return err
		}
	}
	if !errors.Is(err, errSaidNothing) {
		return err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return startError("it %w (%s)", api.ErrStartKilled, status.Signal()).WithHint("agency daemon logs")
	}
	return startError("it ended at once; its log is %s", LogPath(cfg.Home)).WithHint("agency daemon logs")
}

// errSaidNothing means that a daemon ended without reporting that it was ready, or why not.
var errSaidNothing = errors.New("it ended at once")

// keepFiles prevents the daemon from inheriting files that this process got from its caller. It
// would keep a script's lock, or the end of its pipe, as long as it lives.
func keepFiles() {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// awaitReady reads the daemon's report: one line, "ready" or the error as an envelope. A daemon
// that dies reports nothing.
func awaitReady(ctx context.Context, ready *os.File) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = ready.SetReadDeadline(deadline)
	}
	giveUp := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	defer giveUp()
	line, err := bufio.NewReader(ready).ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case line == "ready":
		return nil
	case line != "":
		var env api.Envelope
		if json.Unmarshal([]byte(line), &env) == nil && env.Err() != nil {
			return env.Err()
		}
		return startError("%s", line).WithHint("agency daemon logs")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // the daemon continues, and serves the next command
	case errors.Is(err, os.ErrDeadlineExceeded):
		return startError("it was not ready within %s", duration.Text(spawnTimeout)).WithHint("agency daemon logs")
	default:
		return errSaidNothing
	}
}

// ofRun are the variables of a run, and those that daemonEnv sets again.
var ofRun = []string{
	"AGENCY_RUN_ID", "AGENCY_ATTEMPT", "AGENCY_TOKEN", "AGENCY_WORKTREE", "AGENCY_STATE_DIR", "AGENCY_HOME", "AGENCY_SOCKET", "agency_SOCKET", reportVar,
}

// daemonEnv returns the environment of a daemon: the caller's, without variables of a run or a
// terminal, and with the paths made explicit.
func daemonEnv(caller []string, cfg *config.Config) []string {
	env := agency.Environ(caller).WithoutFunc(func(name string) bool {
		return strings.HasPrefix(name, "TMUX") && name != "TMUX_TMPDIR" || slices.Contains(ofRun, name)
	})
	env = append(env, "AGENCY_HOME="+cfg.Home, reportVar+"=1")
	if cfg.SocketNote == "" {
		env = append(env, "AGENCY_SOCKET="+cfg.Socket)
	}
	return env
}

// reportVar is set when a parent reads a report from descriptor 3.
const reportVar = "AGENCY_DAEMON_REPORT"

// Reporter returns the function by which a spawned daemon reports the result of its start to its
// parent. In a daemon that was not spawned it does nothing. Only its first call has an effect.
func Reporter() func(err error) {
	if os.Getenv(reportVar) == "" {
		return func(error) {}
	}
	_ = os.Unsetenv(reportVar)
	syscall.CloseOnExec(readyFD)
	pipe := os.NewFile(readyFD, "report")
	done := false
	return func(err error) {
		if done || pipe == nil {
			return
		}
		done = true
		if err == nil {
			_, _ = io.WriteString(pipe, "ready\n")
		} else if data, jsonErr := json.Marshal(api.Failure(err)); jsonErr == nil {
			_, _ = fmt.Fprintf(pipe, "%s\n", data)
		}
		_ = pipe.Close()
	}
}
