package maintain

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/file"
)

// NewDocs returns the command agency docs.
func NewDocs(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "docs",
		Short:   "Write the manual pages",
		GroupID: "maintain",
		Example: "  agency docs man ~/.local/share/man/man1",
	}, newDocsMan(d))
}

// newDocsMan returns the command agency docs man.
func newDocsMan(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "man DIR",
		Short: "Write a manual page for each command into a folder",
		Long: `Writes agency.1 and a page for each command, such as agency-run.1, into a folder.
It creates the folder if it is missing, and replaces pages of the same name. The pages have the text
of --help.`,
		Example: "  agency docs man ~/.local/share/man/man1 && man agency-run",
		Args:    command.Takes("DIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}, func(cmd *cobra.Command, args []string) error {
		dir := d.Absolute(args[0])
		pages := []string{}
		err := os.MkdirAll(dir, 0o755) //nolint:gosec // other users read the pages too
		if err == nil {
			err = writePages(d, cmd.Root(), dir, &pages)
		}
		if err != nil {
			return agency.Errorf(agency.CodeInvalidPath, "write the manual pages into %s: %w", dir, file.Cause(err))
		}
		return d.Print(map[string]any{"dir": dir, "pages": pages}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s in %s\n", command.Count(len(pages), "page"), term.SafeLine(dir))
		})
	})
	return cmd
}

// writePages writes the page of a command and those of its subcommands, and adds their names.
func writePages(d *command.Deps, cmd *cobra.Command, dir string, pages *[]string) error {
	if cmd.Hidden {
		return nil
	}
	name := manName(strings.Fields(cmd.CommandPath())[1:]...) + ".1"
	*pages = append(*pages, name)
	if err := file.WriteBeneath(dir, name, manPage(cmd, d.Version), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := writePages(d, c, dir, pages); err != nil {
			return err
		}
	}
	return nil
}

// manName returns the name of the page of a command, without its section.
func manName(path ...string) string { return strings.Join(append([]string{"agency"}, path...), "-") }

// manPage returns the page of a command.
func manPage(cmd *cobra.Command, version string) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"agency %s\" \"agency\"\n", strings.ToUpper(name), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, "\\fB%s\\fR\n", roff(cmd.UseLine()))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + roffText(long))
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(c.Name()), roff(c.Short))
			}
		}
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + roffText(cmd.Example))
	}
	if !cmd.HasParent() {
		b.WriteString(".SH FILES\n.TP\n\\fI~/.agency\\fR\nAll that agency stores; AGENCY_HOME names another folder.\n" +
			".TP\n\\fI~/.config/agency/config.toml\\fR\nThe configuration; AGENCY_CONFIG names another file.\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	pages := []string{}
	if cmd.HasParent() {
		pages = append(pages, `\fBagency\fR(1)`)
	}
	for _, path := range command.Related(cmd) {
		pages = append(pages, `\fB`+roff(manName(strings.Fields(path)...))+`\fR(1)`)
	}
	b.WriteString(strings.Join(pages, ",\n") + "\n")
	return b.Bytes()
}

// manFlags writes a section about flags, if there are any.
func manFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
	})
}

// roffText returns a text of help: paragraphs are filled, and lines that are indented stay as they
// are.
func roffText(text string) string {
	var b strings.Builder
	as := ""
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		kind := "text"
		switch {
		case strings.TrimSpace(line) == "":
			kind = ""
		case line[0] == ' ' || line[0] == '\t':
			kind = "lines"
		}
		if kind != as {
			if as == "lines" {
				b.WriteString(".fi\n.RE\n")
			}
			if kind != "" {
				b.WriteString(".PP\n")
			}
			if kind == "lines" {
				b.WriteString(".RS 4\n.nf\n")
			}
		}
		if as = kind; kind != "" {
			b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
	}
	if as == "lines" {
		b.WriteString(".fi\n.RE\n")
	}
	return b.String()
}

// roff returns a line so that roff prints it as it is.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimRight(line, " "))
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
