package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *App) versionCommand() *cobra.Command {
	return command(cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "maintain", Example: "  agency version", Args: takes(),
	}, func(*cobra.Command, []string) error { return a.printVersion() })
}

func (a *App) printVersion() error {
	return a.print(map[string]any{"version": a.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "agency %s\n", a.Version)
	})
}
