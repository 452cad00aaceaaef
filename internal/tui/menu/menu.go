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
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/view"
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

// Menu is the state of the dialog: the runs as they were numbered last.
type Menu struct {
	o      Options
	runs   []api.Run
	filter string
	asked  map[string]bool // what was told already: runs with what they wait for
	want   chan<- struct{} // has a line read
	lines  <-chan string
	seen   <-chan struct{} // something changed
}

// errLeft means that the user leaves.
var errLeft = errors.New("the user leaves")

// Run shows the menu until the user leaves it.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	want, lines, changes := make(chan struct{}), make(chan string), make(chan struct{}, 1)
	go read(ctx, o.In, want, lines)
	go func() {
		tell := func() {
			select {
			case changes <- struct{}{}:
			default: // it is told already
			}
		}
		_ = o.Daemon.Follow(ctx, func(agency.RunID) { tell() }, tell) // without it, r reads the list again
	}()
	m := &Menu{o: o, asked: map[string]bool{}, want: want, lines: lines, seen: changes}
	err := m.list(ctx)
	for err == nil {
		err = m.top(ctx)
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// read sends a line that the user types each time one is wanted: a program that gets the terminal
// meanwhile must get what the user types there. The end of the input is the end of lines.
func read(ctx context.Context, in io.Reader, want <-chan struct{}, lines chan<- string) {
	defer close(lines)
	for r := bufio.NewReader(in); ; {
		select {
		case <-want:
		case <-ctx.Done():
			return
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return // what is not a whole line may be the beginning of another one
		}
		select {
		case lines <- strings.TrimSpace(line):
		case <-ctx.Done():
			return
		}
	}
}

// top does what the user chooses in the list of runs.
func (m *Menu) top(ctx context.Context) error {
	line, err := m.ask(ctx, "number of a run, n: new run, i: inbox, s: sessions, l: landing queues, /text: filter, r: the list again, q: leave")
	if err != nil {
		return err
	}
	filter, filters := strings.CutPrefix(line, "/")
	switch {
	case filters:
		m.filter = strings.TrimSpace(filter)
		return m.list(ctx)
	case line == "r" || line == "":
		return m.list(ctx)
	case line == "n":
		return m.begin(ctx)
	case line == "i":
		return m.inbox(ctx)
	case line == "s":
		return m.sessions(ctx)
	case line == "l":
		return m.queues(ctx)
	}
	at, ok := m.number(line, len(m.runs))
	if !ok {
		return nil
	}
	if err := m.runWithID(ctx, m.runs[at].ID); err != nil {
		return m.fail(err)
	}
	return nil
}

func (m *Menu) say(format string, args ...any) {
	_, _ = fmt.Fprintln(m.o.Out, term.SafeLine(fmt.Sprintf(format, args...)))
}

// sayLines prints a text of several lines.
func (m *Menu) sayLines(text string) {
	for line := range strings.Lines(text) {
		m.say("%s", line)
	}
}

// fail prints an error and its way out. Only the end of the dialog ends the menu.
func (m *Menu) fail(err error) error {
	if errors.Is(err, errLeft) || errors.Is(err, context.Canceled) {
		return err
	}
	e := agency.AsError(err)
	m.say("error: %s", e.Message)
	if e.Hint != "" {
		m.say("%s", e.Hint)
	}
	return nil
}

// ask returns the next line that the user types; q leaves.
func (m *Menu) ask(ctx context.Context, what string) (string, error) {
	line, err := m.line(ctx, what)
	if err == nil && line == "q" {
		err = errLeft
	}
	return line, err
}

// line returns the next line that the user types, which may be any text. What begins to need the user
// meanwhile is told.
func (m *Menu) line(ctx context.Context, what string) (string, error) {
	m.say("%s", what)
	want := m.want
	for {
		select {
		case want <- struct{}{}:
			want = nil
		case line, ok := <-m.lines:
			if !ok {
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

// number returns the index that a line names, of so many rows.
func (m *Menu) number(line string, rows int) (at int, ok bool) {
	if _, err := fmt.Sscanf(line, "%d", &at); err != nil || fmt.Sprint(at) != line || at < 1 || at > rows {
		m.say("%q is not a number of the list", line)
		return 0, false
	}
	return at - 1, true
}

// choose prints numbered rows, and returns the index of the one that the user chooses; -1 for none.
func (m *Menu) choose(ctx context.Context, rows []string, what string) (int, error) {
	for i, row := range rows {
		m.say("%d. %s", i+1, row)
	}
	return m.pick(ctx, len(rows), what)
}

// pick returns the index of the row that the user chooses, of so many that were printed; -1 for none.
func (m *Menu) pick(ctx context.Context, rows int, what string) (int, error) {
	for {
		line, err := m.ask(ctx, what+", b: back, q: leave")
		if err != nil || line == "b" || line == "" {
			return -1, err
		}
		if at, ok := m.number(line, rows); ok {
			return at, nil
		}
	}
}

// browse prints rows and opens the one that the user chooses, until the user goes back. Each time the
// rows are read again.
func (m *Menu) browse(ctx context.Context, what, none string, read func() (rows []string, open func(i int) error, err error)) error {
	for {
		rows, open, err := read()
		switch {
		case err != nil:
			return m.fail(err)
		case len(rows) == 0:
			m.say("%s", none)
			return nil
		}
		at, err := m.choose(ctx, rows, what)
		if err != nil || at < 0 {
			return err
		}
		if err := open(at); err != nil {
			return err
		}
	}
}

// action is something that the user can have done. It returns what it says.
type action struct {
	does string
	text string // what to ask for a text; empty for none
	sure bool   // the user is asked again
	read bool   // it changes nothing, and another one can follow
	do   func(ctx context.Context, text string) (string, error)
}

// act prints actions, and does the one that the user chooses.
func (m *Menu) act(ctx context.Context, actions []action) error {
	rows := make([]string, len(actions))
	for i := range actions {
		rows[i] = actions[i].does
	}
	const what = "number of an action"
	at, err := m.choose(ctx, rows, what)
	for err == nil && at >= 0 {
		if err = m.do(ctx, &actions[at]); err != nil || !actions[at].read {
			return err
		}
		at, err = m.pick(ctx, len(rows), what) // they were read out
	}
	return err
}

// do does an action, with the text that it needs, when the user is sure.
func (m *Menu) do(ctx context.Context, a *action) (err error) {
	text := ""
	if a.text != "" {
		if text, err = m.line(ctx, a.text+", an empty line for none"); err != nil || text == "" {
			return err
		}
	}
	if a.sure {
		sure, err := m.ask(ctx, a.does+": are you sure? y/n")
		if err != nil || sure != "y" {
			return err
		}
	}
	said, err := a.do(ctx, text)
	if err != nil {
		return m.fail(err)
	}
	m.sayLines(said)
	return nil
}

// news tells which runs need the user that did not before. The numbers stay as they are.
func (m *Menu) news(ctx context.Context) {
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return // the next action says why
	}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; m.isNews(r) {
			m.say("%s (r: the list again)", runText(r))
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
	all := len(resp.Runs)
	m.runs = slices.DeleteFunc(resp.Runs, func(r api.Run) bool { return !list.Matches(m.filter, &r) })
	slices.SortStableFunc(m.runs, func(a, b api.Run) int { return view.Compare(&a, &b) })
	switch {
	case all == 0:
		m.say(`no run yet; n starts one, or in a repository: agency run "fix the login test"`)
	case len(m.runs) == 0:
		m.say("no run matches the filter %s; / ends it", m.filter)
	}
	for i := range m.runs {
		r := &m.runs[i]
		m.isNews(r)
		m.say("%d. %s", i+1, runText(r))
	}
	return nil
}

// runText returns what is to be said of a run in a list.
func runText(r *api.Run) string {
	text := fmt.Sprintf("%s, %s", r.Ref(), r.Status)
	if summary := view.Summary(r); summary != "" {
		text += ": " + summary
	}
	return text
}
