package cli

import (
	"bytes"

	"github.com/spf13/cobra"
)

// The parts that decide something by themselves, for tests of all their cases.
var (
	SafeText   = safeText
	SafeLine   = safeLine
	Fit        = fit
	Width      = width
	Columns    = columns
	ParseSince = parseSince
	CopySafe   = copySafe
	Squeeze    = squeeze
)

// Root is the tree of commands.
func (a *App) Root() *cobra.Command { return a.root() }

// Repaint shows one list after the other on a terminal of 80 columns and 24 rows, and returns what is written for each.
func Repaint(lists ...[]string) []string {
	var out bytes.Buffer
	w := &listWatch{app: &App{Out: &out, out: &output{w: &out}}}
	var written []string
	for _, list := range lists {
		out.Reset()
		w.repaint(list)
		written = append(written, out.String())
	}
	return written
}
