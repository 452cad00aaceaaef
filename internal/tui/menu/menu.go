// Package menu is the dashboard for screen readers and bad lines: rows are appended and never drawn
// again, and everything is chosen by a number.
package menu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
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
	told   map[string]bool // runs with what they wait for
	want   chan<- struct{} // asks for a line
	lines  <-chan string
	seen   <-chan struct{} // something changed
	listed time.Time       // when the runs were last asked for because of that
}

// followAgain is how long to wait before following the events of a daemon that cannot be reached.
const followAgain = 2 * time.Second

// Run shows the menu until the user leaves it.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	want, lines, changes := make(chan struct{}, 1), make(chan string), make(chan struct{}, 1)
	go read(ctx, o.In, want, lines)
	go follow(ctx, &o.Daemon, changes)
	m := &Menu{o: o, told: map[string]bool{}, want: want, lines: lines, seen: changes}
	err := m.list(ctx)
	for err == nil {
		err = m.top(ctx)
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// follow tells of each change at the daemon, until ctx ends.
func follow(ctx context.Context, d *page.Daemon, changes chan<- struct{}) {
	tell := func() {
		select {
		case changes <- struct{}{}:
		default: // it is told already
		}
	}
	for ctx.Err() == nil {
		_ = d.Follow(ctx, func(page.Change) { tell() }, tell)
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
	}
}

// top does what the user chooses in the list of runs.
func (m *Menu) top(ctx context.Context) error {
	c, err := m.pick(ctx, &question{what: "number of a run", rows: len(m.runs), several: true, letters: []letter{
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
		m.filter = c.rest
		return m.fail(m.list(ctx))
	case again:
		return m.fail(m.list(ctx))
	}
	if len(c.rows) > 1 {
		return m.several(ctx, c.rows)
	}
	return m.run(ctx, m.runs[c.rows[0]].ID)
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
	case m.filter != "":
		m.say("%d of %d runs match the filter %s; / ends it", len(m.runs), all, m.filter)
	}
	repos := slices.ContainsFunc(m.runs, func(r api.Run) bool { return r.Repo != m.runs[0].Repo })
	for i := range m.runs {
		r := &m.runs[i]
		m.isNews(r)
		m.say("%d. %s", i+1, runText(r, repos))
	}
	return nil
}

// runText returns what is to be said of a run in a list, with its repository when there are several.
func runText(r *api.Run, repos bool) string {
	text := r.Ref()
	if repos {
		text += " in " + filepath.Base(r.Repo)
	}
	text += ", " + r.Status.String()
	if view.GroupOf(r) == view.GroupSnoozed {
		text += ", snoozed"
	}
	if summary := view.Summary(r); summary != "" {
		text += ": " + summary
	}
	return text
}

// names returns what users call the runs of the list, by their ids.
func (m *Menu) names() map[string]string {
	names := map[string]string{}
	for i := range m.runs {
		names[string(m.runs[i].ID)] = m.runs[i].Ref()
	}
	return names
}

// news tells which runs need the user that did not before. The numbers stay as they are.
func (m *Menu) news(ctx context.Context) {
	m.listed = time.Now()
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{Order: api.OrderByNeed})
	if err != nil {
		return // the next action says why
	}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; m.isNews(r) {
			m.say("news: %s", runText(r, false))
		}
	}
}

// isNews reports whether a run needs the user for something that was not told.
func (m *Menu) isNews(r *api.Run) bool {
	key := string(r.ID) + " " + r.Status.String() + " " + view.PromptID(r)
	switch {
	case view.GroupOf(r) == view.GroupSnoozed:
		delete(m.told, key) // it is told when it is back
		return false
	case !r.NeedsYou() || m.told[key]:
		return false
	}
	m.told[key] = true
	return true
}

// find reads a run by its id.
func (m *Menu) find(ctx context.Context, id agency.RunID) (*api.Run, error) {
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{RunIDs: []agency.RunID{id}})
	switch {
	case err != nil:
		return nil, err
	case len(resp.Runs) == 0:
		name := m.names()[string(id)]
		if name == "" {
			name = "its run"
		}
		return nil, agency.Errorf(agency.CodeRunNotFound, "%s was removed", name).WithHint("the list of runs again: r")
	default:
		return &resp.Runs[0], nil
	}
}

// inform prints an error and its way out.
func (m *Menu) inform(err error) {
	e := agency.AsError(err)
	m.say("error: %s", e.Message)
	if e.Hint != "" {
		m.say("%s", e.Hint)
	}
}

// fail prints an error and its way out. Only the end of the dialog ends the menu.
func (m *Menu) fail(err error) error {
	if err == nil || errors.Is(err, errLeft) || errors.Is(err, context.Canceled) {
		return err
	}
	m.inform(err)
	return nil
}

// named returns runs as a sentence names them.
func named(runs []api.Run) string {
	names := make([]string, len(runs))
	for i := range runs {
		names[i] = runs[i].Ref()
	}
	return strings.Join(names, ", ")
}

// count returns a number of something in words.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
