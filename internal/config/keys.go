package config

import "agency"

// TUI holds the settings for the dashboard.
type TUI struct {
	// Keys are those that the user chose, as users write them, by the name of what they do. The
	// dashboard knows which names and keys there are. It is never nil.
	Keys map[string][]string
}

const keysTable = "tui.keys"

// addKeys binds the table for the keys of the dashboard, with these names.
func (f *format) addKeys(names []string) {
	f.chosen = map[string]*[]string{}
	keys := make([]key, 0, len(names))
	for _, name := range names {
		f.chosen[name] = &[]string{}
		keys = append(keys, listKey(name, f.chosen[name], checkText))
	}
	f.table("", "tui")
	f.table("tui", "keys", keys...)
}

func checkKeyName(name string) error { return agency.CheckWord("name of a key", name) }
