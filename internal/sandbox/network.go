package sandbox

import (
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/host"
)

// Listening is the argument of Inside that makes it listen on the ports and sockets of the next
// argument, and pass the listeners to the file ListenerFile before the agent starts. They stay in
// the sandbox, and what accepts their connections is outside: the agent has no way to it but them.
const Listening = "listening"

// relayInside is the socket in a sandbox on which the wrapper takes requests to the daemon.
const relayInside = "/run/agencyd/agencyd.sock"

// ListenerFile is the number of the open file that takes the listeners: a socket whose other end
// the wrapper has.
const ListenerFile = 3

// proxyPort is the port of agency's proxy in a sandbox, when no host on the list has that.
const proxyPort = 3128

// listening returns the arguments of Inside with which it listens for the relay and for agency's
// proxy, and the environment with which programs use them.
func listening(c *agency.Confinement, env agency.Environ) ([]string, agency.Environ, error) {
	places := []string{}
	if c.Sandbox.Network == agency.NetworkAllow {
		for _, text := range c.Hosts {
			if _, err := host.Parse(text); err != nil {
				return nil, nil, agency.Errorf(agency.CodeSpecInvalid, "a host for the network allow %w", err).
					WithHint("hosts come from [sandbox] hosts, hosts of --spec, and addresses in the agent's variables")
			}
		}
		places = ports(c.Hosts)
		env = proxied(env, c, places[0])
	}
	if c.Relays {
		places = append(places, relayInside)
		env = append(env.Without("AGENCY_SOCKET"), "AGENCY_SOCKET="+relayInside)
	}
	if len(places) == 0 {
		return nil, env, nil
	}
	return []string{Listening, strings.Join(places, ",")}, env, nil
}

// ports returns the ports to listen on in a sandbox with the network allow: that of the proxy, and
// those of hosts on this machine.
func ports(hosts []string) []string {
	locals, proxy := host.Locals(host.List(hosts)), proxyPort
	for slices.ContainsFunc(locals, func(h host.Host) bool { return h.Port == proxy }) {
		proxy++
	}
	list := []string{strconv.Itoa(proxy)}
	for _, h := range locals {
		list = append(list, strconv.Itoa(h.Port))
	}
	return list
}

// proxied returns an environment with which programs use agency's proxy, but for what is on the
// agent's own loopback. A NO_PROXY that was set for the attempt stays.
func proxied(env agency.Environ, c *agency.Confinement, port string) agency.Environ {
	// The programs of Node read the others only with the first one.
	set := agency.Environ{"NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		set = append(set, name+"=http://127.0.0.1:"+port, strings.ToLower(name)+"=http://127.0.0.1:"+port)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if !slices.Contains(c.Set, name) {
			set = append(set, name+"=localhost,127.0.0.1,::1")
		}
	}
	replaced := []string{"ALL_PROXY", "all_proxy"}
	for _, kv := range set {
		name, _, _ := strings.Cut(kv, "=")
		replaced = append(replaced, name)
	}
	return append(env.WithoutFunc(func(name string) bool { return slices.Contains(replaced, name) }), set...)
}
