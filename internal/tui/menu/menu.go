// Package menu is the dashboard for screen readers and poor connections: it appends rows and never
// draws one again, and the user chooses everything by a number.
package menu

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// Options are what the menu gets from the command line.
type Options struct {
	Daemon page.Daemon
	In     io.Reader
	Out    io.Writer
	Dir    string // working directory of the caller
	Env    []string
	Config string
	// Runner reads a runner as users write it: a kind, or the name of a custom one.
	Runner func(name string) (kind agency.RunnerKind, custom string)
	// Command returns a command of this program, to be run on the terminal.
	Command func(args ...string) *exec.Cmd
}

// Menu offers the runs, sessions, queues and messages, and does what the user chooses.
type Menu struct {
	o       Options
	console *console
	runs    *runList
}

// Run shows the menu until the user leaves it.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	want, lines, changes := make(chan struct{}, 1), make(chan string), make(chan struct{}, 1)
	go read(ctx, o.In, want, lines)
	go follow(ctx, &o.Daemon, changes)
	m := &Menu{o: o, runs: &runList{daemon: &o.Daemon, told: map[string]bool{}}}
	m.console = &console{out: o.Out, want: want, lines: lines, changes: changes, news: m.runs.news}
	err := m.list(ctx)
	for err == nil {
		err = m.top(ctx)
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// follow sends on changes after each change at the daemon, until ctx ends.
func follow(ctx context.Context, d *page.Daemon, changes chan<- struct{}) {
	tell := func() {
		select {
		case changes <- struct{}{}:
		default: // the change before has not been read yet
		}
	}
	for ctx.Err() == nil {
		_ = d.Follow(ctx, func(page.Change) { tell() }, tell)
		select {
		case <-time.After(page.FollowAgain):
		case <-ctx.Done():
		}
	}
}

// top does what the user chooses in the list of runs.
func (m *Menu) top(ctx context.Context) error {
	c, err := m.console.pick(ctx, &question{what: "number of a run", rows: len(m.runs.numbered), several: true, letters: []letter{
		{"n", "new run", "start a run, or a session of agents from a plan"},
		{"s", "sessions", "the sessions"},
		{"l", "landing queues", "what waits to land"},
		{"i", "inbox", "alerts, and messages of agents"},
		{"/", "filter", "and behind it a filter: letters of a name, s:STATUS, t:TAG, r:REPOSITORY; alone it ends the filter"},
		{again, "the list again", "the list of runs again; an empty line too. Several numbers, as 2 3, choose several runs"},
		{leave, "leave", "leave; the runs continue"},
	}})
	if err != nil {
		return err
	}
	switch c.letter {
	case "n":
		return m.begin(ctx)
	case "i":
		return m.inbox(ctx)
	case "s":
		return m.sessions(ctx)
	case "l":
		return m.queues(ctx)
	case "/":
		m.runs.filter = c.rest
		return m.console.fail(m.list(ctx))
	case again:
		return m.console.fail(m.list(ctx))
	}
	if len(c.rows) > 1 {
		return m.several(ctx, c.rows)
	}
	return m.run(ctx, m.runs.numbered[c.rows[0]].ID)
}

// list reads the runs again and prints them, numbered.
func (m *Menu) list(ctx context.Context) error {
	all, err := m.runs.read(ctx)
	if err != nil {
		return err
	}
	runs := m.runs.numbered
	switch {
	case all == 0:
		m.console.say(`no run yet; n starts one, or in a repository: agency run "fix the login test"`)
	case m.runs.filter != "":
		m.console.say("%d of %d runs match the filter %s; / ends it", len(runs), all, m.runs.filter)
	}
	repos := slices.ContainsFunc(runs, func(r api.Run) bool { return r.Repo != runs[0].Repo })
	for i := range runs {
		m.runs.isNews(&runs[i])
		m.console.say("%d. %s", i+1, runText(&runs[i], repos))
	}
	return nil
}

// named returns the names of runs.
func named(runs []api.Run) string {
	names := make([]string, len(runs))
	for i := range runs {
		names[i] = runs[i].Ref()
	}
	return strings.Join(names, ", ")
}
