// Package menu is the dashboard for screen readers and bad lines: rows are appended and never drawn
// again, and everything is chosen by a number.
package menu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Options are what the menu gets from the command line.
type Options struct {
	Daemon page.Daemon
	In     io.Reader
	Out    io.Writer
	Env    []string
	Config string
	// Command returns a command of this program, to be run on the terminal.
	Command func(args ...string) *exec.Cmd
}

// Menu is the state of the dialog: the runs as they were numbered last.
type Menu struct {
	o     Options
	runs  []api.Run
	asked map[string]bool // what was told already: runs with what they wait for
	lines <-chan string
	seen  <-chan struct{} // something changed
}

// errLeft means that the user leaves.
var errLeft = errors.New("the user leaves")

// Run shows the menu until the user leaves it.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, changes := make(chan string), make(chan struct{}, 1)
	go read(ctx, o.In, lines)
	go func() {
		tell := func() {
			select {
			case changes <- struct{}{}:
			default: // it is told already
			}
		}
		_ = o.Daemon.Follow(ctx, func(agency.RunID) { tell() }, tell) // without it, r reads the list again
	}()
	m := &Menu{o: o, asked: map[string]bool{}, lines: lines, seen: changes}
	err := m.list(ctx)
	for err == nil {
		var line string
		if line, err = m.ask(ctx, "number of a run, r: the list again, q: leave"); err == nil {
			err = m.choose(ctx, line)
		}
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// read sends the lines that the user types. The end of the input is the end of lines.
func read(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	for s := bufio.NewScanner(in); s.Scan(); {
		select {
		case lines <- strings.TrimSpace(s.Text()):
		case <-ctx.Done():
			return
		}
	}
}

func (m *Menu) say(format string, args ...any) {
	_, _ = fmt.Fprintln(m.o.Out, term.SafeLine(fmt.Sprintf(format, args...)))
}

// ask returns the next line that the user types. What begins to need the user meanwhile is told.
func (m *Menu) ask(ctx context.Context, what string) (string, error) {
	m.say("%s", what)
	for {
		select {
		case line, ok := <-m.lines:
			if !ok || line == "q" {
				return "", errLeft
			}
			return line, nil
		case <-m.seen:
			m.news(ctx)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// news tells which runs need the user that did not before. The numbers stay as they are.
func (m *Menu) news(ctx context.Context) {
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return // the next action says why
	}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; m.isNews(r) {
			m.say("%s %s: %s (r: the list again)", r.Ref(), r.Status, view.Summary(r))
		}
	}
}

// isNews reports whether a run needs the user for something that was not told.
func (m *Menu) isNews(r *api.Run) bool {
	key := string(r.ID) + " " + r.Status.String() + " " + view.PromptID(r)
	if !r.NeedsYou() || m.asked[key] {
		return false
	}
	m.asked[key] = true
	return true
}

// list prints the runs, numbered.
func (m *Menu) list(ctx context.Context) error {
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return err
	}
	m.runs = resp.Runs
	slices.SortStableFunc(m.runs, func(a, b api.Run) int { return view.Compare(&a, &b) })
	if len(m.runs) == 0 {
		m.say(`no run yet; start one: agency run "fix the login test"`)
	}
	for i := range m.runs {
		r := &m.runs[i]
		m.isNews(r)
		m.say("%d. %s, %s: %s", i+1, r.Ref(), r.Status, view.Summary(r))
	}
	return nil
}

func (m *Menu) choose(ctx context.Context, line string) error {
	if line == "r" || line == "" {
		return m.list(ctx)
	}
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > len(m.runs) {
		m.say("%q is not a number of the list", line)
		return nil
	}
	return m.run(ctx, &m.runs[n-1])
}

// run shows one run and does what the user chooses.
func (m *Menu) run(ctx context.Context, r *api.Run) error {
	m.say("%s, %s", r.Ref(), r.Status)
	if q := r.Request; q != nil {
		m.say("it asks: %s", strings.TrimSpace(q.Tool+" "+q.Text))
	}
	actions := actions(r)
	for i, a := range actions {
		m.say("%d. %s", i+1, a.does)
	}
	line, err := m.ask(ctx, "number of an action, b: back, q: leave")
	if err != nil || line == "b" || line == "" {
		return err
	}
	n, wrong := strconv.Atoi(line)
	if wrong != nil || n < 1 || n > len(actions) {
		m.say("%q is not a number of an action", line)
		return nil
	}
	a, text := actions[n-1], ""
	if a.text != "" {
		if text, err = m.ask(ctx, a.text); err != nil || text == "" {
			return err
		}
	}
	if a.sure {
		if text, err = m.ask(ctx, a.does+": are you sure? y/n"); err != nil || text != "y" {
			return err
		}
	}
	said, err := a.do(ctx, m, r, text)
	if err != nil {
		e := agency.AsError(err)
		m.say("error: %s", e.Message)
		if e.Hint != "" {
			m.say("%s", e.Hint)
		}
		return nil
	}
	for line := range strings.Lines(said) {
		m.say("%s", line)
	}
	return nil
}
