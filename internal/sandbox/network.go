package sandbox

import (
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/host"
)

// Listening is the argument of Inside that makes it listen on the ports of the next argument, and
// pass the listeners to the file ListenerFile before the agent starts. The listeners are in the sandbox's
// network, and the proxy that accepts their connections is outside: the agent can reach it only by them.
const Listening = "listening"

// ListenerFile is the number of the open file to which the listeners are passed: a socket to the wrapper, or
// to the holder.
const ListenerFile = 3

// proxyPort is the port of agency's proxy in a sandbox, unless a host on the list has it.
const proxyPort = 3128

// ports returns the ports to listen on in a sandbox with the network allow: that of the proxy, and
// those of hosts on this machine.
func ports(hosts []string) string {
	locals, proxy := host.Locals(host.List(hosts)), proxyPort
	for slices.ContainsFunc(locals, func(h host.Host) bool { return h.Port == proxy }) {
		proxy++
	}
	list := []string{strconv.Itoa(proxy)}
	for _, h := range locals {
		list = append(list, strconv.Itoa(h.Port))
	}
	return strings.Join(list, ",")
}

// proxied returns an environment with which programs use agency's proxy, except for addresses on the agent's
// own loopback. A NO_PROXY that was set for the attempt stays.
func proxied(env agency.Environ, c *agency.Confinement, ports string) agency.Environ {
	port, _, _ := strings.Cut(ports, ",")
	// Node reads the other variables only with this one.
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
