package cli

import "github.com/spf13/cobra"

// Root is the tree of commands.
func (a *App) Root() *cobra.Command { return a.root(a.deps()) }
