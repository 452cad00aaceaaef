package agent

import (
	"net/url"

	"agency"
)

// Hosts returns the hosts of the addresses in variables of an environment, with their ports, as a
// list of hosts has them.
func Hosts(env agency.Environ, names ...string) []string {
	var hosts []string
	for _, name := range names {
		u, err := url.Parse(env.Lookup(name))
		if err != nil || u.Hostname() == "" {
			continue
		}
		host := u.Host
		if u.Port() == "443" || u.Port() == "80" {
			host = u.Hostname()
		}
		hosts = append(hosts, host)
	}
	return hosts
}
