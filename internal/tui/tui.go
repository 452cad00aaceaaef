// Package tui is the dashboard in the terminal: the runs by how much they need the user, the screen
// of one, and a key for everything that the user does with them. It is a client of the api alone. Update
// does no I/O: commands do, and end as messages.
package tui

import (
	"context"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/tui/page"
)

// Options are what the dashboard gets from the command line.
type Options struct {
	Daemon page.Daemon
	In     *os.File
	Out    *os.File
	Env    []string // NAME=value, of the caller
	Dir    string   // working directory of the caller
	Config string   // the caller's configuration file; empty means the default one
	Now    func() time.Time
	Keys   page.Keymap
	Views  map[string]string // filters of the list, by name
	// Runner reads a runner as users write it: a kind, or the name of a custom one.
	Runner  func(name string) (kind agency.RunnerKind, custom string)
	Runners []string // those that the user can name
	Presets []string // of the configuration
	// Command returns a command of this program, to be run on the terminal.
	Command func(args ...string) *exec.Cmd
	// Away, if it is not nil, carries why the daemon does not answer, in words, and "" when it answers
	// again.
	Away <-chan string
}

// gcPercent makes the garbage collector run sooner than in other programs: the dashboard runs for a long
// time, and each change at the daemon makes a frame that is garbage a moment later.
const gcPercent = 60

// Run shows the dashboard until the user leaves it.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	out := newRestful(ctx, o.Out)
	p := tea.NewProgram(New(ctx, o), tea.WithInput(o.In), tea.WithOutput(out), tea.WithFilter(out.filter), tea.WithEnvironment(o.Env),
		tea.WithoutSignalHandler()) // signals end ctx; bubbletea's own handler would wait for ever for a program that ends by it
	// Given ctx, bubbletea would close its input while it still reads it.
	defer context.AfterFunc(ctx, p.Quit)()
	out.begin(p)
	go listen(ctx, &o, p.Send)
	_, err := p.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// listen sends a message for each change at the daemon, until ctx ends.
func listen(ctx context.Context, o *Options, send func(tea.Msg)) {
	if o.Away != nil {
		go func() {
			for {
				select {
				case why := <-o.Away:
					send(awayMsg(why))
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for ctx.Err() == nil {
		err := o.Daemon.Follow(ctx, func(c page.Change) { send(messageOf(c)) }, func() { send(againMsg{}) })
		if ctx.Err() != nil {
			return
		}
		send(awayMsg(agency.AsError(err).Message))
		select {
		case <-time.After(page.FollowAgain):
		case <-ctx.Done():
			return
		}
	}
}

// messageOf returns the message of a change at the daemon.
func messageOf(c page.Change) tea.Msg {
	if c.Run == "" && !c.All {
		return otherMsg{}
	}
	return changedMsg{c.Run}
}
