package run

// WayOut returns what attach says about the keys of a tmux server, as list-keys printed them.
func WayOut(listed string, inside, switched, own bool) (text string, answers bool) {
	k := readKeys(listed)
	return wayOut(&k, inside, switched, own), k.answer
}

// Nested reports whether attach takes a terminal for one inside of another tmux.
func Nested(env map[string]string) bool { return nested(func(name string) string { return env[name] }) }
