package page

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agency"
)

// Keymap holds the keys that the user chose for bindings, by their names. They replace the keys of the program.
// A binding without keys is in the palette alone.
type Keymap map[string][]string

// NewKeymap returns the keymap for keys as users write them: "x", "ctrl-x", "f5", "pgdown".
func NewKeymap(chosen map[string][]string) (Keymap, error) {
	k := Keymap{}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		k[name] = []string{}
		for _, text := range chosen[name] {
			key, ok := readKey(text)
			if !ok {
				return nil, keysError("%q is not a key, in %s", text, name).WithHint("such as x, X, ctrl-x, alt-x, enter, space, up, pgdown or f5")
			}
			k[name] = append(k[name], key)
		}
	}
	return k, nil
}

// keysError returns an error about the keys in the configuration.
func keysError(format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodeConfigInvalid, format, args...)
}

// namedKeys are the keys without a character, as bubbletea names them.
var namedKeys = []string{
	"enter", "esc", "tab", "space", "backspace", "delete", "insert", "up", "down", "left", "right", "home", "end", "pgup", "pgdown",
	"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
}

// readKey returns the name that bubbletea has for a key, and reports whether it is a key.
func readKey(text string) (string, bool) {
	rest, held := text, ""
	for _, with := range []string{"ctrl", "alt", "shift"} { // in the order of bubbletea
		for _, sign := range []string{"-", "+"} {
			if after, ok := strings.CutPrefix(rest, with+sign); ok {
				rest, held = after, held+with+"+"
				break
			}
		}
	}
	if slices.Contains(namedKeys, rest) {
		return held + rest, true
	}
	r, size := utf8.DecodeRuneInString(rest)
	return held + rest, size == len(rest) && r != utf8.RuneError && unicode.IsPrint(r) && r != ' ' && !strings.HasPrefix(held, "shift")
}

// ShowKey returns a key as users read and write it.
func ShowKey(key string) string {
	at := strings.LastIndex(key[:len(key)-1], "+") // a + at the end is the key itself
	if at < 0 {
		return key
	}
	return strings.ReplaceAll(key[:at], "+", "-") + "-" + key[at+1:]
}

// Apply returns a table with the keys that the user chose.
func (k Keymap) Apply(table []Binding) []Binding {
	if len(k) == 0 {
		return table
	}
	table = slices.Clone(table)
	for i := range table {
		if keys, ok := k[table[i].Name]; ok && table[i].Name != "" {
			shown := make([]string, 0, len(keys))
			for _, key := range keys {
				shown = append(shown, ShowKey(key))
			}
			table[i].Keys, table[i].Shown = keys, strings.Join(shown, ", ")
		}
	}
	return table
}

// reserved are keys with the same meaning in every program on a terminal.
var reserved = []string{"ctrl+c", "ctrl+z"}

// Check returns an error if no binding has a name of the keymap, or if a chosen key would do two things on one
// screen. Each screen has one of the tables.
func (k Keymap) Check(tables ...[]Binding) error {
	known := map[string]bool{}
	for _, table := range tables {
		for i := range table {
			known[table[i].Name] = true
		}
	}
	delete(known, "")
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if !known[name] {
			return keysError("nothing is called %q", name).WithHint("the names are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		for _, key := range k[name] {
			if slices.Contains(reserved, key) {
				return keysError("%s cannot be a key of %s", ShowKey(key), name).WithHint("ctrl-c always leaves, and ctrl-z suspends")
			}
		}
	}
	for _, table := range tables {
		if err := k.clash(k.Apply(table)); err != nil {
			return err
		}
	}
	return nil
}

// clash returns an error if another binding of the table has a chosen key too.
func (k Keymap) clash(table []Binding) error {
	for i := range table {
		if _, chosen := k[table[i].Name]; !chosen {
			continue
		}
		for j := range table {
			if j == i || table[j].Name == table[i].Name {
				continue
			}
			for _, key := range table[i].Keys {
				if table[j].Has(key) {
					if table[j].Name == "" {
						return keysError("%s would be both %s and: %s", ShowKey(key), table[i].Name, table[j].Does).WithHint("choose another key for %s", table[i].Name)
					}
					return keysError("%s would be both %s and %s", ShowKey(key), table[i].Name, table[j].Name).
						WithHint("give the other one a key of its own: [tui.keys] %s = [\"KEY\"]", table[j].Name)
				}
			}
		}
	}
	return nil
}
