package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency/internal/proc"
)

// peerSessions is how many sessions each program has at once. claude-squad allows no more.
const peerSessions = 10

// contender is a program that runs coding agents.
type contender interface {
	// start starts a session whose agent runs the script agent, and returns when it was asked.
	start(ctx context.Context, name string) (time.Time, error)
	// rest ends what was needed only to start the sessions.
	rest()
	// list returns the command that prints the sessions; nil when there is none.
	list() []string
	// face returns what shows the sessions on a terminal, and a text of its first whole screen.
	face() (argv []string, shows string)
	// processes returns the processes that live while its user does nothing, without its face.
	processes(ctx context.Context) ([]int, error)
	world() *world
	close() error
}

// peerBench is a measurement of several programs in turns, in repositories of the same content. Each
// has a home and a tmux server of its own.
type peerBench struct {
	*bench

	agent string // the script that every session runs
	began *os.File
	names []string
	all   []contender
}

// measurePeers measures agency beside claude-squad and agent-deck. One that cannot be built is told
// with the reason and left out.
func measurePeers(ctx context.Context, b *bench) (err error) {
	p := &peerBench{bench: b, agent: filepath.Join(b.root, "agent")}
	fifo := filepath.Join(b.root, "began")
	if err := exec.CommandContext(ctx, "mkfifo", fifo).Run(); err != nil {
		return fmt.Errorf("mkfifo %s: %w", fifo, err)
	}
	if p.began, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.began.Close()) }()
	script := "#!/bin/sh\necho . >" + fifo + "\nexec sleep 1000\n"
	if err := os.WriteFile(p.agent, []byte(script), 0o700); err != nil {
		return err
	}
	defer func() {
		for _, c := range p.all {
			err = errors.Join(err, c.close())
		}
	}()
	for _, prepare := range []func(context.Context, *peerBench) (string, contender, error){prepareAgency, prepareSquad, prepareDeck} {
		name, c, err := prepare(ctx, p)
		if c != nil {
			p.names, p.all = append(p.names, name), append(p.all, c)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && c != nil:
			return err
		case err != nil:
			b.table.add(row{what: name, got: "left out, it cannot be built", beside: lastLine(err.Error())}, 0, nil)
		}
	}
	for _, measure := range []func(context.Context) error{p.creates, p.lists, p.faces, p.idles} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// buildPeer builds a peer in the version that the module test/bench/peers/NAME pins, and returns it
// with a title that says so.
func buildPeer(ctx context.Context, p *peerBench, name, module, pkg string) (program, title string, err error) {
	dir, program := filepath.Join("test", "bench", "peers", name), filepath.Join(p.root, name)
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, _, err := timed(ctx, dir, env, "go", "list", "-m", "-f", "{{.Version}}", module)
	title = strings.TrimSpace(name + " " + string(out))
	if err == nil {
		_, _, err = timed(ctx, dir, env, "go", "build", "-o", program, pkg)
	}
	return program, title, err
}

// lastLine returns the last line of a text that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// arrival waits until an agent has begun.
func (p *peerBench) arrival() (time.Time, error) {
	if err := p.began.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return time.Time{}, err
	}
	_, err := p.began.Read(make([]byte, 2))
	return time.Now(), err
}

// creates measures from the user's command, or the last key, until the agent runs.
func (p *peerBench) creates(ctx context.Context) error {
	took := make([]samples, len(p.all))
	for i := range peerSessions {
		for n := range p.all {
			side := (n + i) % len(p.all)
			asked, err := p.all[side].start(ctx, fmt.Sprintf("session-%d", i))
			if err != nil {
				return fmt.Errorf("%s: %w", p.names[side], err)
			}
			at, err := p.arrival()
			if err != nil {
				return fmt.Errorf("%s: its agent %d did not begin: %w", p.names[side], i, err)
			}
			if i > 0 { // the first ones warm up
				took[side] = append(took[side], at.Sub(asked))
			}
			if err := pause(ctx, 500*time.Millisecond); err != nil { // what it does afterwards is not in the next one's time
				return err
			}
		}
	}
	for _, c := range p.all {
		c.rest()
	}
	for n, name := range p.names {
		p.beside(fmt.Sprintf("create until the agent runs, 300 files: %s", name), took[n], took[0])
	}
	return nil
}

func (p *peerBench) beside(what string, took, ours samples) {
	p.table.add(row{
		what: what, got: took.String(), beside: ours.String(), ratio: fmt.Sprintf("%.2fx", float64(took.median())/float64(ours.median())),
	}, inMS(took.median()), nil)
}

// lists measures the commands that print ten sessions.
func (p *peerBench) lists(ctx context.Context) error {
	took := make([]samples, len(p.all))
	for i := range p.reps(40, 10) + 2 {
		for n, c := range p.all {
			if c.list() == nil {
				continue
			}
			_, d, err := timed(ctx, c.world().dir, c.world().env, c.list()...)
			if err != nil {
				return err
			}
			if i >= 2 { // the first two warm up
				took[n] = append(took[n], d)
			}
		}
	}
	for n, name := range p.names {
		what := fmt.Sprintf("list %d: %s", peerSessions, name)
		if p.all[n].list() == nil {
			p.table.add(row{what: what, got: "it has no such command"}, 0, nil)
			continue
		}
		p.beside(what, took[n], took[0])
	}
	return nil
}

// faces measures from the start of the program that shows the sessions to its first whole screen.
func (p *peerBench) faces(ctx context.Context) error {
	took := make([]samples, len(p.all))
	for i := range p.reps(10, 3) + 1 {
		for n, c := range p.all {
			d, at, err := p.open(ctx, c)
			if err != nil {
				return err
			}
			d.close()
			if i > 0 {
				took[n] = append(took[n], at.Sub(d.began))
			}
		}
	}
	for n, name := range p.names {
		p.beside(fmt.Sprintf("start to the first screen, %d sessions: %s", peerSessions, name), took[n], took[0])
	}
	return nil
}

// open opens the face of a program, and returns when its first whole screen was there.
func (p *peerBench) open(ctx context.Context, c contender) (*dashboard, time.Time, error) {
	argv, shows := c.face()
	d, err := openFace(ctx, c.world().dir+"/repo", c.world().env, argv...)
	if err != nil {
		return nil, time.Time{}, err
	}
	at, err := d.until(ctx, shows)
	if err != nil {
		d.close()
	}
	return d, at, err
}

// idles measures ten sessions at which nothing happens: the processes that a program keeps, its tmux
// server, and all that they start; first as they are, then with the face open.
func (p *peerBench) idles(ctx context.Context) error {
	if err := pause(ctx, time.Duration(p.reps(100, 5))*time.Second); err != nil { // until agency has looked at each silent run
		return err
	}
	for _, open := range []bool{false, true} {
		for n, c := range p.all {
			used, err := p.idle(ctx, c, open)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%d at rest: %s", peerSessions, p.names[n])
			if open {
				what = fmt.Sprintf("%d at rest, its screen open: %s", peerSessions, p.names[n])
			}
			p.table.add(row{what: what, got: fmt.Sprintf("%.3f %% of a core", used)}, used, nil)
		}
	}
	return nil
}

func (p *peerBench) idle(ctx context.Context, c contender, open bool) (percent float64, err error) {
	window := time.Duration(p.reps(30, 5)) * time.Second
	pids, err := c.processes(ctx)
	if err != nil {
		return 0, err
	}
	wait := func(d time.Duration) error { return pause(ctx, d) }
	if open {
		d, _, err := p.open(ctx, c)
		if err != nil {
			return 0, err
		}
		defer d.close()
		pids = append(pids, d.cmd.Process.Pid)
		wait = func(window time.Duration) error {
			_, err := d.during(ctx, window)
			return err
		}
		if err := wait(3 * time.Second); err != nil {
			return 0, err
		}
	}
	before, err := usedByAll(pids)
	if err != nil {
		return 0, err
	}
	if err := wait(window); err != nil {
		return 0, err
	}
	after, err := usedByAll(pids)
	return 100 * (after - before).Seconds() / window.Seconds(), err
}

// usedByAll returns the processor time of processes, and of all that they started and start. What a
// child used that has ended is counted in ticks, once its parent has waited for it.
func usedByAll(pids []int) (time.Duration, error) {
	var used time.Duration
	seen := map[int]bool{}
	for todo := slices.Clone(pids); len(todo) > 0; todo = todo[1:] {
		pid := todo[0]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		s, err := proc.Of(pid)
		if err != nil {
			if slices.Contains(pids, pid) {
				return 0, err
			}
			continue // a child that ended meanwhile
		}
		own, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		used += own + time.Duration(s.Children)*proc.Tick
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		if err != nil {
			return 0, err
		}
		for _, thread := range threads {
			data, err := os.ReadFile(thread)
			if err != nil {
				continue // it ended meanwhile
			}
			for field := range bytes.FieldsSeq(data) {
				if child, err := strconv.Atoi(string(field)); err == nil {
					todo = append(todo, child)
				}
			}
		}
	}
	return used, nil
}
