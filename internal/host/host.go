// Package host reads the lists of hosts that an agent in a sandbox may reach.
package host

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Host is what an agent may reach: one name, or all below it.
type Host struct {
	Name  string // in lower case, or an IP address
	Below bool   // all names below Name, and not Name itself
	// Port is the only port; 0 is 443, and 80 without TLS. A host with a port may be on this machine
	// or in a private network.
	Port int
}

// groups are hosts that have one name together: the registries of packages.
func groups() map[string][]string {
	return map[string][]string{
		"npm":    {"registry.npmjs.org", "registry.yarnpkg.com"},
		"go":     {"proxy.golang.org", "sum.golang.org"},
		"pypi":   {"pypi.org", "files.pythonhosted.org"},
		"crates": {"crates.io", "index.crates.io", "static.crates.io"},
		"gems":   {"rubygems.org", "index.rubygems.org"},
		"maven":  {"repo.maven.apache.org", "repo1.maven.org"},
		"debian": {"deb.debian.org", "security.debian.org"},
	}
}

// lowest is the lowest port that programs without rights can listen on.
const lowest = 1024

// Parse reads one entry of a list: a name, *.NAME for all names below it, either with :PORT, an IP
// address with a port, or the name of a group.
func Parse(text string) ([]Host, error) {
	if names, ok := groups()[text]; ok {
		hosts := make([]Host, 0, len(names))
		for _, name := range names {
			hosts = append(hosts, Host{Name: name})
		}
		return hosts, nil
	}
	h := Host{Name: strings.ToLower(text)}
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		port, err := strconv.ParseUint(text[i+1:], 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("has no port at its end: %q", text)
		}
		h.Name, h.Port = h.Name[:i], int(port)
	}
	h.Name = strings.TrimSuffix(strings.TrimPrefix(h.Name, "["), "]")
	if addr, err := netip.ParseAddr(h.Name); err == nil {
		if h.Port == 0 {
			return nil, fmt.Errorf("is an address without a port: %q", text)
		}
		h.Name = addr.Unmap().String()
	} else {
		h.Name, h.Below = strings.CutPrefix(h.Name, "*.")
		h.Name = strings.TrimSuffix(h.Name, ".")
		switch {
		case !isName(h.Name):
			return nil, fmt.Errorf("is not the name of a host: %q", text)
		case !strings.Contains(h.Name, ".") && h.Port == 0:
			return nil, fmt.Errorf("is neither a full name nor a group: %q; the groups are %s", text, strings.Join(slices.Sorted(maps.Keys(groups())), ", "))
		}
	}
	if h.Local() && h.Port < lowest {
		return nil, fmt.Errorf("is on this machine and needs a port of %d or more: %q", lowest, text)
	}
	return []Host{h}, nil
}

// List reads a list of entries, of which it leaves out those that are not valid.
func List(entries []string) []Host {
	var all []Host
	for _, text := range entries {
		if hosts, err := Parse(text); err == nil {
			all = append(all, hosts...)
		}
	}
	return all
}

// isName reports whether a text has the form of the name of a host.
func isName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		bad := strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
		if bad || label == "" || len(label) > 63 {
			return false
		}
	}
	return true
}

// Local reports whether the host is this machine, under the name or address that every machine has
// for itself.
func (h Host) Local() bool {
	addr, err := netip.ParseAddr(h.Name)
	return h.Name == "localhost" && !h.Below || err == nil && addr.IsLoopback()
}

// Reaches reports whether a name and a port are of the host.
func (h Host) Reaches(name string, port int) bool {
	switch {
	case h.Below && !strings.HasSuffix(name, "."+h.Name), !h.Below && name != h.Name:
		return false
	case h.Port == 0:
		return port == 443 || port == 80
	default:
		return port == h.Port
	}
}

// Locals returns the hosts of a list that are Local, one for each port.
func Locals(hosts []Host) []Host {
	var locals []Host
	for _, h := range hosts {
		if h.Local() && !slices.ContainsFunc(locals, func(l Host) bool { return l.Port == h.Port }) {
			locals = append(locals, h)
		}
	}
	return locals
}
