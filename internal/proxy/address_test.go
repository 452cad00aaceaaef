package proxy

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "255.255.255.255": false, "224.0.0.1": false, "240.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "ff02::1": false, "::": false, "::ffff:10.0.0.1": false, "::10.0.0.1": false,
		"64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:db8::1": false, "198.18.0.1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}
