package proxy

import (
	"net/netip"
	"slices"
	"sync"
)

// special are the ranges of addresses, besides those that netip knows, that are not part of the public
// internet, or that contain an IPv4 address which may not be.
var special = sync.OnceValue(func() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10", "5f00::/16",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
})

// public reports whether an address belongs to the public internet.
func public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() &&
		!slices.ContainsFunc(special(), func(p netip.Prefix) bool { return p.Contains(addr) })
}
