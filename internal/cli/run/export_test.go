package run

// WayOut returns what attach says about the keys of a tmux server, as list-keys printed them.
func WayOut(listed string, inside, switched, own bool) (text string, answers bool) {
	k := readKeys(listed)
	return wayOut(&k, inside, switched, own), k.answer
}
