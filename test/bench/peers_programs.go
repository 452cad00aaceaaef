package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// newPeerWorld makes a home with a tmux server and, in the folder repo, a repository. A peer uses the
// server that tmux uses by itself.
func newPeerWorld(ctx context.Context, p *peerBench) (*world, error) {
	w, repo, err := newWorldWith(ctx, p.bench, 300)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(repo, filepath.Join(w.dir, "repo")); err != nil {
		return nil, err
	}
	w.socket = filepath.Join(w.dir, fmt.Sprintf("tmux-%d", os.Getuid()), "default")
	w.env = append(w.env, "TMUX_TMPDIR="+w.dir)
	if err := os.Mkdir(filepath.Dir(w.socket), 0o700); err != nil {
		return nil, err
	}
	return w, w.startTmux(ctx)
}

// tmuxServer returns the pid of the world's tmux server.
func (w *world) tmuxServer(ctx context.Context) (int, error) {
	out, err := w.run(ctx, w.dir, "tmux", "-S", w.socket, "display-message", "-p", "-t", "keep", "#{pid}")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// ours is agency, with worktrees made for each run and none ahead.
type ours struct {
	w     *world
	repo  string
	agent string
}

func prepareAgency(ctx context.Context, p *peerBench) (string, contender, error) {
	w, repo, err := newWorldWith(ctx, p.bench, 300)
	if err != nil {
		return "agency", nil, err
	}
	c := &ours{w: w, repo: filepath.Join(w.dir, "repo"), agent: p.agent}
	return "agency", c, errors.Join(os.Rename(repo, c.repo), w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx))
}

func (c *ours) start(ctx context.Context, name string) (time.Time, error) {
	asked := time.Now()
	_, err := c.w.run(ctx, c.repo, c.w.agency, "run", "--name", name, "--runner", "shell", "--prompt", "exec "+c.agent)
	return asked, err
}

func (c *ours) rest() {}

func (c *ours) list() []string { return []string{c.w.agency, "ls"} }

func (c *ours) face() ([]string, string) { return []string{c.w.agency, "tui"}, "session-1" }

func (c *ours) processes(ctx context.Context) ([]int, error) {
	server, err := c.w.tmuxServer(ctx)
	return []int{c.w.pid, server}, err
}

func (c *ours) world() *world { return c.w }

func (c *ours) close() error { return c.w.close() }

// squad is claude-squad, which is a terminal program: its user types n, a name and Enter, and its
// sessions are looked after while it is open.
type squad struct {
	w              *world
	program, agent string
	open           *dashboard
}

func prepareSquad(ctx context.Context, p *peerBench) (string, contender, error) {
	program, title, err := buildPeer(ctx, p, "claude-squad", "claude-squad", "claude-squad")
	if err != nil {
		return title, nil, err
	}
	w, err := newPeerWorld(ctx, p)
	if err != nil {
		return title, nil, err
	}
	c := &squad{w: w, program: program, agent: p.agent}
	own := filepath.Join(w.dir, ".claude-squad")
	err = errors.Join(os.Mkdir(own, 0o700), os.WriteFile(filepath.Join(own, "state.json"), []byte(`{"help_screens_seen": 4294967295, "instances": []}`), 0o600))
	if err == nil {
		c.open, err = openFace(ctx, filepath.Join(w.dir, "repo"), w.env, program, "--program", p.agent)
	}
	if err == nil {
		_, err = c.open.until(ctx, "new")
	}
	return title, c, err
}

func (c *squad) start(ctx context.Context, name string) (time.Time, error) {
	for _, keys := range []string{"n", name} {
		if err := c.open.press(keys); err != nil {
			return time.Time{}, err
		}
		if _, err := c.open.during(ctx, time.Second); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), c.open.press("\r")
}

func (c *squad) list() []string { return nil }

func (c *squad) face() ([]string, string) {
	return []string{c.program, "--program", c.agent}, "session-1"
}

func (c *squad) processes(ctx context.Context) ([]int, error) {
	server, err := c.w.tmuxServer(ctx)
	return []int{server}, err
}

// rest ends the screen in which the sessions were made: it is at work all the time.
func (c *squad) rest() {
	if c.open != nil {
		c.open.close()
		c.open = nil
	}
}

func (c *squad) world() *world { return c.w }

func (c *squad) close() error {
	c.rest()
	return c.w.close()
}

// deck is agent-deck. The version that is pinned makes no worktree, and allows one session in a
// folder, so its user makes the worktree.
type deck struct {
	w              *world
	program, agent string
}

func prepareDeck(ctx context.Context, p *peerBench) (string, contender, error) {
	program, title, err := buildPeer(ctx, p, "agent-deck", "github.com/asheshgoplani/agent-deck", "github.com/asheshgoplani/agent-deck/cmd/agent-deck")
	if err != nil {
		return title, nil, err
	}
	w, err := newPeerWorld(ctx, p)
	if err != nil {
		return title, nil, err
	}
	return title + " after git worktree add", &deck{w: w, program: program, agent: p.agent}, nil
}

func (c *deck) start(ctx context.Context, name string) (time.Time, error) {
	asked := time.Now()
	tree := filepath.Join(c.w.dir, name)
	for _, argv := range [][]string{
		{"git", "worktree", "add", "-q", "-b", name, tree},
		{c.program, "add", "-t", name, "-c", c.agent, tree},
		{c.program, "session", "start", name},
	} {
		if _, err := c.w.run(ctx, filepath.Join(c.w.dir, "repo"), argv...); err != nil {
			return asked, err
		}
	}
	return asked, nil
}

func (c *deck) rest() {}

func (c *deck) list() []string { return []string{c.program, "list"} }

func (c *deck) face() ([]string, string) { return []string{c.program}, "session-1" }

func (c *deck) processes(ctx context.Context) ([]int, error) {
	server, err := c.w.tmuxServer(ctx)
	return []int{server}, err
}

func (c *deck) world() *world { return c.w }

func (c *deck) close() error { return c.w.close() }
