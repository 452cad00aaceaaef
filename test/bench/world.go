package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
)

// world is a data root with a daemon and a tmux server of its own.
type world struct {
	agency string
	dir    string
	home   string
	socket string // tmux's
	env    []string
	client *api.Client
	pid    int // the daemon's
}

// newWorld makes the folders; nothing runs yet. The caller closes it.
func newWorld(b *bench) (*world, error) {
	dir, err := os.MkdirTemp(b.root, "")
	if err != nil {
		return nil, err
	}
	w := &world{agency: b.agency, dir: dir, home: filepath.Join(dir, "h"), socket: filepath.Join(dir, "t")}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[tmux]\nsocket = %q\n", w.socket), 0o600); err != nil {
		return nil, err
	}
	if err := os.Mkdir(w.home, 0o700); err != nil {
		return nil, err
	}
	w.env = append(plainEnv(dir), "AGENCY_HOME="+w.home, "AGENCY_CONFIG="+config)
	w.client = api.NewClient(filepath.Join(w.home, "agencyd.sock"), "", nil)
	return w, nil
}

// newWorldWith makes a world and, beside it, a repository with so many files.
func newWorldWith(ctx context.Context, b *bench, files int) (w *world, repo string, err error) {
	if repo, err = makeRepo(ctx, b, files); err != nil {
		return nil, "", err
	}
	w, err = newWorld(b)
	return w, repo, err
}

// configure adds to the configuration; the next daemon reads it.
func (w *world) configure(text string) error {
	f, err := os.OpenFile(filepath.Join(w.dir, "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// plainEnv returns this environment without variables that lead to the user's own agency, tmux or
// git configuration.
func plainEnv(home string) []string {
	env := agency.Environ(os.Environ()).WithoutFunc(func(name string) bool {
		return strings.HasPrefix(strings.ToUpper(name), "AGENCY") || strings.HasPrefix(name, "TMUX") || strings.HasPrefix(name, "GIT_") ||
			strings.HasPrefix(name, "XDG_") || name == "HOME"
	})
	return append(env, "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
}

// startDaemon starts a daemon and, so that sessions start and end on a warm one, a tmux server that
// stays.
func (w *world) startDaemon(ctx context.Context) error {
	out, err := w.run(ctx, w.dir, w.agency, "daemon", "start", "--json")
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			PID int `json:"pid"`
		} `json:"data"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return fmt.Errorf("read the answer of daemon start: %w", err)
	}
	w.pid = answer.Data.PID
	return nil
}

// stopDaemon ends the daemon, after an interrupt too.
func (w *world) stopDaemon(ctx context.Context) error {
	pid := w.pid
	if pid == 0 {
		return nil
	}
	w.pid = 0
	if _, err := w.run(context.WithoutCancel(ctx), w.dir, w.agency, "daemon", "stop"); err != nil {
		return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	return nil
}

// startTmux starts a tmux server that stays, so that sessions start and end on a warm one.
func (w *world) startTmux(ctx context.Context) error {
	_, err := w.run(ctx, w.dir, "tmux", "-S", w.socket, "new-session", "-d", "-s", "keep", "sleep 100000")
	return err
}

// close ends everything of the world: the runs with their tmux server, and the daemon, also after
// an interrupt. The caller removes the folders with their root.
func (w *world) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var problems []error
	if _, err := os.Lstat(w.socket); err == nil {
		if _, err := w.run(ctx, w.dir, "tmux", "-S", w.socket, "kill-server"); err != nil && !strings.Contains(err.Error(), "no server") {
			problems = append(problems, err)
		}
	}
	for w.pid != 0 && ctx.Err() == nil {
		status, err := api.Call(ctx, w.client, api.DaemonStatus, api.Empty{})
		if err != nil || status.LiveRuns == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	problems = append(problems, w.stopDaemon(ctx))
	return errors.Join(problems...)
}

// run runs a program and returns what it printed.
func (w *world) run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	out, _, err := timed(ctx, dir, w.env, argv...)
	return out, err
}

// timed runs a program and measures it from its start to its end.
func timed(ctx context.Context, dir string, env []string, argv ...string) ([]byte, time.Duration, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		// With --json agency tells on its output what failed.
		told := strings.TrimSpace(cmp.Or(stderr.String(), stdout.String()))
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, told)
	}
	return stdout.Bytes(), took, err
}

// startRun starts a shell script as a run and returns its handle.
func (w *world) startRun(ctx context.Context, repo, script string) (string, error) {
	out, err := w.run(ctx, repo, w.agency, "run", "--runner", "shell", "--prompt", script)
	return strings.TrimSpace(string(out)), err
}
