package config

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/document"
)

// Setting is one key of agency.toml with its new value: a string or a bool. Nil removes SetupKey.
type Setting struct {
	Key   string // "project.type"
	Value any
}

// SetupKey is the only key that can be removed.
const SetupKey = "scripts.setup"

// text returns the value as TOML.
func (s Setting) text() string {
	switch v := s.Value.(type) {
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quote(v)
	default:
		panic("config: a setting is a string or a bool")
	}
}

// CheckSetting refuses a value that ParseProject would refuse, with E_USAGE.
func CheckSetting(s Setting) error {
	if s.Value == nil {
		return nil
	}
	p := agency.DefaultProject()
	v := &document.Value{Kind: document.Text, Text: settingText(s)}
	if _, ok := s.Value.(bool); ok {
		v.Kind = document.Boolean
	}
	err := projectFormat("", &p).keys[s.Key].set(v)
	if err == nil {
		return nil
	}
	refused := agency.Errorf(agency.CodeUsage, "%s %w", s.Key, err)
	if wrong, ok := errors.AsType[*document.Problem](err); ok {
		refused.Hint = wrong.Hint
	}
	return refused
}

// EditProject sets keys in an agency.toml and leaves everything else unchanged, comments and line
// ends included. It returns the new document and, for each key that changed, a line for the user.
// The document must be one that ParseProject accepts. E_CONFIG_INVALID means that a key is written
// in a valid way that cannot be edited automatically: the user has to do it.
func EditProject(path string, data []byte, settings []Setting) (edited []byte, changes []string, err error) {
	edited = slices.Clone(data)
	for _, s := range settings {
		if s.Value == nil {
			was, next, err := removeSetup(path, edited)
			if err != nil {
				return nil, nil, err
			}
			if was != "" {
				changes = append(changes, SetupKey+" is removed (was "+was+")")
			}
			edited = next
			continue
		}
		was, next := setKey(edited, s)
		switch {
		case bytes.Equal(edited, next):
			continue
		case was == "":
			changes = append(changes, s.Key+" = "+s.text())
		default:
			changes = append(changes, s.Key+" = "+s.text()+" (was "+was+")")
		}
		edited = next
		if _, err := ParseProject(path, edited); err != nil {
			return nil, nil, agency.Errorf(agency.CodeConfigInvalid, "%s: agency cannot set %q to %s", path, s.Key, s.text()).
				WithHint("write it into %s yourself, under [%s]", path, strings.Split(s.Key, ".")[0])
		}
	}
	return edited, changes, nil
}

// Set returns the configuration file of a user with one key set, and everything else unchanged,
// comments included; was is the value before as the file has it, empty when it has none. value is
// as in TOML; a text needs no quotes. A file with a mistake can be edited when it has none
// afterwards. E_USAGE means that the key is unknown, E_CONFIG_INVALID that it cannot have the value,
// or that it is written in a way that cannot be edited automatically.
func Set(path string, env []string, data []byte, key, value string) (edited []byte, was string, err error) {
	load := func(data []byte) (*Config, error) {
		return environment(env).load(func() (string, []byte, error) { return path, data, nil })
	}
	names := keyNames(key)
	if len(names) < 2 {
		return nil, "", agency.Errorf(agency.CodeUsage, "%q is not a key of the configuration", clip(key)).WithHint("agency config show lists them, such as defaults.runner")
	}
	last := len(names) - 1
	texts := []string{quote(value)}
	if text := strings.TrimSpace(value); isValue(text) {
		texts = []string{text, texts[0]}
	}
	for _, text := range texts {
		was, edited := setValue(data, names[:last], names[last], text)
		after, wrong := load(edited)
		if wrong == nil && slices.ContainsFunc(after.origins, func(o Origin) bool { return o.Key == key && o.From != fromDefault }) {
			return edited, was, nil
		}
		err = cmp.Or(err, wrong)
	}
	if _, before := load(data); before != nil {
		return nil, "", before
	}
	if err == nil {
		err = agency.Errorf(agency.CodeConfigInvalid, "it must be written by hand")
	}
	return nil, "", agency.Errorf(agency.CodeConfigInvalid, "%s cannot be %s: %w", clip(key), clip(value), err).
		WithHint("%s", cmp.Or(agency.AsError(err).Hint, "agency config edit"))
}

// AddHost returns the configuration file of a user with one more entry of [sandbox] hosts.
func (c *Config) AddHost(env []string, data []byte, entry string) (edited []byte, err error) {
	if slices.Contains(c.Sandbox.Hosts, entry) {
		return data, nil
	}
	texts := []string{}
	for _, text := range append(slices.Clone(c.Sandbox.Hosts), entry) {
		texts = append(texts, quote(text))
	}
	edited, _, err = Set(c.Path, env, data, "sandbox.hosts", "["+strings.Join(texts, ", ")+"]")
	return edited, err
}

// keyNames returns the names of which a dotted key of TOML consists; nil when the text is not a key.
func keyNames(key string) []string {
	root, faults := document.TOML([]byte(key + " = 0"))
	if len(faults) > 0 || strings.ContainsAny(key, "\r\n") {
		return nil
	}
	names := []string{}
	for v := root; len(v.Fields) == 1; v = v.Fields[0].Value {
		names = append(names, v.Fields[0].Key)
	}
	return names
}

// isValue reports whether a text is exactly one value of TOML, so that nothing after it in a file
// changes its meaning.
func isValue(text string) bool {
	const before = "value = "
	root, faults := document.TOML([]byte(before + text + "\n"))
	return len(faults) == 0 && len(root.Fields) == 1 && root.Fields[0].Value.Span == [2]int{len(before), len(before) + len(text)}
}

// setKey returns the document with one key set; was is its value before.
func setKey(data []byte, s Setting) (was string, edited []byte) {
	table, name, _ := strings.Cut(s.Key, ".")
	root, _ := document.TOML(data)
	if v := root.Lookup(table, name); v != nil && v.Kind != document.List && v.Text == settingText(s) && v.Span[1] > 0 {
		return string(data[v.Span[0]:v.Span[1]]), data // the same value, perhaps in other quotes
	}
	return setValue(data, []string{table}, name, s.text())
}

// setValue returns the document with one key of the table at a path set to a value as it is written
// in TOML; was is the value before.
func setValue(data []byte, path []string, name, value string) (was string, edited []byte) {
	root, _ := document.TOML(data)
	if v := root.Lookup(append(slices.Clone(path), name)...); v != nil && v.Span[1] > 0 {
		return string(data[v.Span[0]:v.Span[1]]), slices.Concat(data[:v.Span[0]], []byte(value), data[v.Span[1]:])
	}
	header := document.Position{}
	if v := root.Lookup(path...); v != nil {
		header = v.Header
	}
	eol := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		eol = "\r\n"
	}
	line := dotted("", name) + " = " + value + eol
	if header.Line == 0 {
		if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
			data = slices.Concat(data, []byte(eol))
		}
		gap := ""
		if len(bytes.TrimSpace(data)) > 0 {
			gap = eol
		}
		table := ""
		for _, name := range path {
			table = dotted(table, name)
		}
		return "", slices.Concat(data, []byte(gap+"["+table+"]"+eol+line))
	}
	at := lineEnd(data, header.Line)
	if at > 0 && data[at-1] != '\n' {
		line = eol + line
	}
	return "", slices.Concat(data[:at], []byte(line), data[at:])
}

// removeSetup returns the document without a setup; was is the removed one, empty when there was
// none. Only whole lines of the key are removed; they must contain nothing else.
func removeSetup(path string, data []byte) (was string, edited []byte, err error) {
	root, _ := document.TOML(data)
	setup := root.Lookup(strings.Split(SetupKey, ".")...)
	if setup == nil {
		return "", data, nil
	}
	want, err := ParseProject(path, data)
	if err != nil {
		return "", nil, err
	}
	was, want.Setup = projectFormat(path, &want).keys[SetupKey].show(), nil
	line := setup.At.Line
	begin := lineEnd(data, line-1)
	for end, next := begin, line; end < len(data) && next < line+mostLines; next++ {
		end = lineEnd(data, next)
		edited = slices.Concat(data[:begin], data[end:])
		if got, err := ParseProject(path, edited); err == nil && reflect.DeepEqual(got, want) {
			return was, edited, nil
		}
	}
	return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s: agency cannot remove %q", path, SetupKey).
		WithHint("remove it from %s yourself, under [scripts]", path)
}

// mostLines is the maximum number of lines of a value that is removed.
const mostLines = 100

// settingText returns the value as the parser returns it.
func settingText(s Setting) string {
	if text, ok := s.Value.(string); ok {
		return text
	}
	return s.text()
}

// lineEnd returns where the line after the given one begins, in bytes; lines count from 1.
func lineEnd(data []byte, line int) int {
	at := 0
	for range line {
		next := bytes.IndexByte(data[at:], '\n')
		if next < 0 {
			return len(data)
		}
		at += next + 1
	}
	return at
}
