package maintain

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"agency/internal/cli/command"
)

// NewVersion returns the command agency version.
func NewVersion(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "maintain", Example: "  agency version", Args: command.Takes(),
	}, func(*cobra.Command, []string) error { return PrintVersion(d) })
}

// commit returns the commit that the program was built from; empty when the build did not record
// it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// PrintVersion prints the version of the program.
func PrintVersion(d *command.Deps) error {
	return d.Print(map[string]any{"version": d.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "commit": commit()}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "agency %s\n", d.Version)
	})
}
