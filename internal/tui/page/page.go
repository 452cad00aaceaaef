// Package page is what the screens of the dashboard have in common: the table of keys that each of
// them is, and what a screen gets from the dashboard.
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

// Binding is a row of a table of keys: what a key does, in the footer, in the help, in the palette
// and in docs/tui.md.
type Binding struct {
	Name  string   // by which users give it keys of their own; empty if they cannot
	Keys  []string // as bubbletea names them
	Shown string   // as users read them
	Does  string   // in the help
	Short string   // in the footer; empty keeps it out
	Group string
	Act   func(key string) tea.Cmd
}

// Has reports whether a key is one of the binding's.
func (b *Binding) Has(key string) bool { return slices.Contains(b.Keys, key) }

// Do returns an action without a key and without a command.
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

// Page is a screen in place of the list of runs.
type Page interface {
	Title() string
	Bindings() []Binding
	// Open returns the command that reads what is shown.
	Open() tea.Cmd
	// Changed returns the command that reads it again after a change at the daemon, or nil.
	Changed() tea.Cmd
	// Update handles a message, which may be for another page.
	Update(msg tea.Msg) tea.Cmd
	Draw(width, height int) []cell.Line
	// Typing returns the row on which the user types, or nil; then all keys go to Type.
	Typing(width int) cell.Line
	Type(key tea.KeyPressMsg) tea.Cmd
	Paste(text string)
}

// Quiet is the part of a page on which nothing is typed.
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
	Say     func(text string) tea.Cmd
	Begin   func(id int, does string) int // shows in the first row what is being done, until an Acted ends it; id is 0, or what it returned before
	Fail    func(err error) tea.Cmd
	Confirm func(text string, do func() tea.Cmd) tea.Cmd
	Later   func(d time.Duration, msg tea.Msg) tea.Cmd // ends as a message after a time
	Open    func(p Page) tea.Cmd                       // shows a page in place of the list
	Leave   func() tea.Cmd
	Go      func(run agency.RunID) tea.Cmd                            // leaves the page for a run of the list
	Name    func(run string) string                                   // what users call a run of the list, by its id
	Exec    func(cmd *exec.Cmd, done func(err error) tea.Msg) tea.Cmd // gives the terminal to a program until it ends
	Key     func(name string) string                                  // the first key of what a binding of the list does
}

// Acted is what an action ends as: a text for the last row, or an error.
type Acted struct {
	Text string
	Err  error
	ID   int // of Begin; 0 without one
}

// Act runs an action in a command, and says what came of it.
func (d *Desk) Act(does, done string, act func(ctx context.Context) error) tea.Cmd {
	id := d.Begin(0, does)
	return func() tea.Msg { return Acted{Text: done, Err: act(d.Ctx), ID: id} }
}

// Finder returns what reports whether a text has a sought one in it. Capital letters count only in a
// sought text that has some.
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

// Scroll returns the first of the visible rows so that the row of the cursor is one of them.
func Scroll(top, at, height, rows int) int {
	top = min(top, at)
	top = max(top, at-height+1)
	return max(min(top, rows-height), 0)
}
