// Package page has what the screens of the dashboard share: the interface of a screen with its table of keys,
// and what a screen gets from the dashboard.
package page

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/tui/cell"
)

// Binding is a row of a table of keys. The footer, the help, the palette and docs/tui.md show it.
type Binding struct {
	Name  string   // in the configuration, where users can choose other keys; empty if they cannot
	Keys  []string // as bubbletea names them
	Shown string   // the keys as users read them
	Does  string   // what the keys do, in the help
	Short string   // the same in the footer; empty for a binding that is not there
	Group string   // of the help
	Act   func(key string) tea.Cmd
}

// Has reports whether a key is one of the keys of the binding.
func (b *Binding) Has(key string) bool { return slices.Contains(b.Keys, key) }

// Do returns an action that does not depend on the key and needs no command.
func Do(act func()) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		act()
		return nil
	}
}

// Run returns an action that does not depend on the key.
func Run(act func() tea.Cmd) func(string) tea.Cmd {
	return func(string) tea.Cmd { return act() }
}

// Page is a screen: the list of runs, or what is shown in its place.
type Page interface {
	Title() string
	Bindings() []Binding
	// Open returns the command that reads what the page shows.
	Open() tea.Cmd
	// Changed returns the command that reads the same again after a change at the daemon, or nil.
	Changed() tea.Cmd
	// Update handles a message, which may be for another page.
	Update(msg tea.Msg) tea.Cmd
	Draw(width, height int) []cell.Line
	// Typing returns the row on which the user types, or nil. Unless it is nil, all keys go to Type.
	Typing(width int) cell.Line
	Type(key tea.KeyPressMsg) tea.Cmd
	Paste(text string)
}

// Quiet is embedded in a page on which the user does not type.
type Quiet struct{}

// Typing implements Page.
func (Quiet) Typing(int) cell.Line { return nil }

// Type implements Page.
func (Quiet) Type(tea.KeyPressMsg) tea.Cmd { return nil }

// Paste implements Page.
func (Quiet) Paste(string) {}

// Desk is what a page gets from the dashboard.
type Desk struct {
	Ctx    context.Context //nolint:containedctx // of the program, for the commands
	Daemon Daemon
	Now    func() time.Time
	Dir    string
	Env    []string
	Config string
	// Runner reads a runner as users write it: a kind, or the name of a custom one.
	Runner  func(name string) (kind agency.RunnerKind, custom string)
	Runners []string        // that the user can name
	Presets []string        // of the configuration
	Repos   func() []string // of the runs of the list, by the alphabet
	// Say shows a text in the last row for a while.
	Say func(text string) tea.Cmd
	// Fail shows an error in the last row until the user presses a key.
	Fail func(err error) tea.Cmd
	// Confirm asks a question in the last row, and calls do after a y.
	Confirm func(text string, do func() tea.Cmd) tea.Cmd
	// Begin shows in the first row what is being done, until an Acted with the returned id. id is 0 for
	// something new, and else what Begin returned before.
	Begin func(id int, does string) int
	// Later returns the command that ends as a message after a time.
	Later func(d time.Duration, msg tea.Msg) tea.Cmd
	// Open shows a page in place of the list.
	Open func(p Page) tea.Cmd
	// Leave goes back to the list.
	Leave func() tea.Cmd
	// Go goes back to the list, and moves its cursor to a run.
	Go func(run agency.RunID) tea.Cmd
	// Name returns the name of a run of the list by its id, or the id.
	Name func(run string) string
	// Exec gives the terminal to a program until it ends.
	Exec func(cmd *exec.Cmd, done func(err error) tea.Msg) tea.Cmd
	// Key returns the first key of a binding of the list, by its name.
	Key func(name string) string
}

// Acted is the message that ends an action, with a text for the last row or an error.
type Acted struct {
	Text string
	Err  error
	ID   int // of Begin; 0 without one
}

// Act returns the command that does an action. does and done are the texts while and after it.
func (d *Desk) Act(does, done string, act func(ctx context.Context) error) tea.Cmd {
	id := d.Begin(0, does)
	return func() tea.Msg { return Acted{Text: done, Err: act(d.Ctx), ID: id} }
}

// Finder returns a function that reports whether a text contains the sought one. Capital letters count only in
// a sought text that has some.
func Finder(sought string) func(text string) bool {
	if strings.ToLower(sought) != sought {
		return func(text string) bool { return strings.Contains(text, sought) }
	}
	return func(text string) bool { return strings.Contains(strings.ToLower(text), sought) }
}

// InOrder reports whether a text has all characters of a word, in their order.
func InOrder(word, text string) bool {
	for _, r := range word {
		_, after, ok := strings.Cut(text, string(r))
		if !ok {
			return false
		}
		text = after
	}
	return true
}

// Message returns a page with nothing but a text.
func Message(text string, width, height int) []cell.Line {
	return Fill([]cell.Line{cell.Of(cell.Dim, "  "+text)}, width, height)
}

// Count returns a number of things in words.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// Fill returns rows filled up or cut off to a height.
func Fill(lines []cell.Line, width, height int) []cell.Line {
	for len(lines) < height {
		lines = append(lines, cell.Of(cell.Plain, ""))
	}
	lines = lines[:height]
	for i := range lines {
		lines[i] = lines[i].Fit(width)
	}
	return lines
}

// Scroll returns the first visible row. It is top or, if the cursor at the row at would not be visible then, the
// nearest row with which it is.
func Scroll(top, at, height, rows int) int {
	top = min(top, at)
	top = max(top, at-height+1)
	return max(min(top, rows-height), 0)
}
