package host_test

import (
	"fmt"
	"testing"

	"agency/internal/host"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com": "[{example.com false 0}]", "Example.COM.": "[{example.com false 0}]", "*.example.com": "[{example.com true 0}]",
		"example.com:8443": "[{example.com false 8443}]", "[::1]:8080": "[{::1 false 8080}]", "127.0.0.1:11434": "[{127.0.0.1 false 11434}]",
		"localhost:11434": "[{localhost false 11434}]", "gpu:8000": "[{gpu false 8000}]",
		"go":        "[{proxy.golang.org false 0} {sum.golang.org false 0}]",
		"localhost": "", "127.0.0.1": "", "10.0.0.1": "", "localhost:80": "", "exa mple.com": "", "*": "", "*.": "", "": "", "a..b": "", "example.com:0": "",
		"example.com:http": "", "https://example.com": "", "a.*.com": "", "gone": "", "::1": "",
	} {
		hosts, err := host.Parse(text)
		got := fmt.Sprint(hosts)
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}
