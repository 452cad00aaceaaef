package cli

import "github.com/spf13/cobra"

// Root is the tree of commands; with args, as it is for them.
func (a *App) Root(args ...string) *cobra.Command { return a.root(a.deps(), args) }
