package inspect

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// format is how agency ls prints runs: a table that fits the output, unless one of these is set.
type format struct {
	quiet  bool   // the handles alone
	output string // one of outputs
	format string // columns with commas between them, or a template of one line
}

// outputs are the values of --output.
var outputs = []string{"json", "yaml", "wide", "name"}

// check refuses invalid values, and combinations without a meaning, also with --json and --watch.
func (f *format) check(asJSON, watch bool) error {
	given := 0
	for _, set := range []bool{f.quiet, f.output != "", f.format != "", asJSON} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		return agency.Errorf(agency.CodeUsage, "-q, --output, --format and --json exclude each other").WithHint("agency ls --help")
	case f.output != "" && !slices.Contains(outputs, f.output):
		return agency.Errorf(agency.CodeUsage, "--output is %q, not one of %s", f.output, strings.Join(outputs, ", ")).WithHint("agency ls -o wide")
	case watch && given > 0 && !asJSON && f.output != "json":
		return agency.Errorf(agency.CodeUsage, "--watch shows the usual table, or with --json a list for each change").WithHint("agency ls --watch")
	}
	return nil
}

// fields returns the fields of a run that the format needs, on a terminal or not; nil means all.
func (f *format) fields(terminal bool) []string {
	columns := command.PipeColumns()
	switch {
	case f.output == "json", f.output == "yaml", strings.Contains(f.format, "{{"):
		return nil
	case f.quiet:
		columns = []command.Column{command.ColumnRunID}
	case f.output == "name":
		columns = []command.Column{command.ColumnRunID, command.ColumnName}
	case f.format != "":
		columns, _ = parseColumns(f.format) // print returns the error of a mistake
	case terminal || f.output == "wide":
		columns = command.RunColumns()
	}
	return command.RunFields(columns...)
}

// print writes runs in the chosen format; it reports false when the usual table is to be printed.
func (f *format) print(w io.Writer, d *command.Deps, runs []api.Run) (done bool, err error) {
	columns := command.RunColumns()
	switch {
	case f.quiet:
		return true, lines(w, runs, func(r *api.Run) string { return r.Handle })
	case f.output == "name":
		return true, lines(w, runs, (*api.Run).Ref)
	case f.output == "wide":
	case strings.Contains(f.format, "{{"):
		template, err := parseTemplate(f.format, d.Now())
		if err != nil {
			return true, err
		}
		return true, lines(w, runs, template)
	case f.format != "":
		if columns, err = parseColumns(f.format); err != nil {
			return true, err
		}
	default:
		return false, nil
	}
	table := command.NewTable(runs, d.Now())
	table.Keep(columns...)
	_, err = io.WriteString(w, table.Text(d.Colour()))
	return true, err
}

// lines writes one line for each run.
func lines(w io.Writer, runs []api.Run, line func(r *api.Run) string) error {
	var b strings.Builder
	for i := range runs {
		b.WriteString(line(&runs[i]) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// parseColumns reads the names of columns with commas between them.
func parseColumns(text string) ([]command.Column, error) {
	columns := []command.Column{}
	for name := range strings.SplitSeq(text, ",") {
		c := command.Column(strings.ToUpper(strings.TrimSpace(name)))
		if !slices.Contains(command.RunColumns(), c) {
			return nil, noColumn(name)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// noColumn returns the error for an unknown column name.
func noColumn(name string) error {
	known := []string{}
	for _, c := range command.RunColumns() {
		known = append(known, string(c))
	}
	return agency.Errorf(agency.CodeUsage, "--format: there is no column %q", strings.TrimSpace(name)).WithHint("the columns: %s", strings.Join(known, ", "))
}

// place matches a placeholder of a template: {{.name}}.
var place = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{ *\.([A-Za-z_]+) *\}\}`) })

// parseTemplate reads a line in which {{.name}} stands for a field of a run as in --json, or for a
// column; case and "_" do not matter. Status and state are in the words of the table. \t and \n are
// a tab and a new line.
func parseTemplate(text string, now time.Time) (func(r *api.Run) string, error) {
	known, err := fields(&api.Run{})
	if err != nil {
		return nil, err
	}
	columns := map[string]command.Column{}
	for _, c := range command.RunColumns() {
		columns[plainName(string(c))] = c
	}
	for _, found := range place().FindAllStringSubmatch(text, -1) {
		name := plainName(found[1])
		_, field := known[name]
		if _, column := columns[name]; !field && !column {
			return nil, agency.Errorf(agency.CodeUsage, "--format: a run has no %q", found[1]).WithHint("its fields: agency ls --json")
		}
	}
	if left := place().ReplaceAllString(text, ""); strings.Contains(left, "{{") {
		return nil, agency.Errorf(agency.CodeUsage, "--format: %q is not {{.field}}", left[strings.Index(left, "{{"):]).WithHint(`agency ls --format '{{.name}} {{.status}}'`)
	}
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text)
	return func(r *api.Run) string {
		values, _ := fields(r) // as those of the empty run
		return place().ReplaceAllStringFunc(text, func(found string) string {
			name := plainName(place().FindStringSubmatch(found)[1])
			value := values[name]
			if c, ok := columns[name]; ok && (value == "" || value[0] == '{') {
				return c.Cell(r, now) // in words for users, where JSON has nothing or an object
			}
			return value
		})
	}, nil
}

// fields returns the fields of a run as in --json, by their plain names: texts without quotes but
// safe for a terminal, other values as JSON, and nothing for null.
func fields(r *api.Run) (map[string]string, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for name, value := range raw {
		var text string
		switch {
		case string(value) == "null":
		case json.Unmarshal(value, &text) == nil:
			values[plainName(name)] = term.SafeLine(text)
			continue
		default:
			text = string(value)
		}
		values[plainName(name)] = term.SafeLine(text)
	}
	values["status"], values["state"] = r.Status.String(), r.State.String()
	return values, nil
}

// plainName returns the name of a field or column without what does not matter in it.
func plainName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "") }
