package cli

import "github.com/spf13/cobra"

// The parts that decide something by themselves, for tests of all their cases.
var (
	SafeText   = safeText
	SafeLine   = safeLine
	Fit        = fit
	Width      = width
	Columns    = columns
	ParseSince = parseSince
	CopySafe   = copySafe
)

// Root is the tree of commands.
func (a *App) Root() *cobra.Command { return a.root() }
