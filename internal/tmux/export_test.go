package tmux

// The parsers and the socket rule, for the tests of this package.
var (
	ParseVersion = parseVersion
	Readable     = readable
)

// ParseList returns what parseList reads as pairs of a name and a number of clients.
func ParseList(out string) (names []string, clients []int, err error) {
	all, err := parseList(out)
	for _, s := range all {
		names, clients = append(names, s.name), append(clients, s.clients)
	}
	return names, clients, err
}
