package config

import "agency"

// TUI holds the settings for the dashboard.
type TUI struct {
	// Keys are those that the user chose, as users write them, by the name of what they do. The
	// dashboard knows which names and keys there are. It is never nil.
	Keys map[string][]string
	// Views are filters of its list, by name. It is never nil.
	Views map[string]string
}

const (
	keysTable  = "tui.keys"
	viewsTable = "tui.views"
)

// addTUI binds the tables for the dashboard, with these names of keys and views.
func (f *format) addTUI(names, views []string) {
	f.chosen = map[string]*[]string{}
	keys := make([]key, 0, len(names))
	for _, name := range names {
		f.chosen[name] = &[]string{}
		keys = append(keys, listKey(name, f.chosen[name], checkText))
	}
	f.table("", "tui")
	f.table("tui", "keys", keys...)
	f.views = map[string]*string{}
	filters := make([]key, 0, len(views))
	for _, name := range views {
		f.views[name] = new(string)
		filters = append(filters, textKey(name, f.views[name], checkText))
	}
	f.table("tui", "views", filters...)
}

func checkKeyName(name string) error { return agency.CheckWord("name of a key", name) }

func checkViewName(name string) error { return agency.CheckWord("name of a view", name) }
