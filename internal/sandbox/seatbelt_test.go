package sandbox

import (
	"slices"
	"strings"
	"testing"

	"agency"
)

// reader reads the language of profiles: lists of words and texts in parentheses.
type reader struct{ text string }

func (r *reader) list() []any {
	items := []any{}
	for {
		r.text = strings.TrimLeft(r.text, " \n")
		switch {
		case r.text == "" || r.text[0] == ')':
			r.text = strings.TrimPrefix(r.text, ")")
			return items
		case r.text[0] == '(':
			r.text = r.text[1:]
			items = append(items, r.list())
		case r.text[0] == '"':
			var b strings.Builder
			i := 1
			for ; r.text[i] != '"'; i++ {
				if r.text[i] == '\\' {
					i++
				}
				b.WriteByte(r.text[i])
			}
			items, r.text = append(items, b.String()), r.text[i+1:]
		default:
			i := strings.IndexAny(r.text, " )\n\"")
			items, r.text = append(items, r.text[:i]), r.text[i:]
		}
	}
}

// decides returns what the last rule that fits says about a path or, without one, about a whole
// operation; a rule with filters fits a path below one of them.
func decides(profile, operation, path string) string {
	decision := ""
	for _, item := range (&reader{profile}).list() {
		rule := item.([]any)
		fits, filters := rule[0] == "deny" && rule[1] == "default", false
		named := slices.ContainsFunc(rule[1:], func(one any) bool { return one == operation })
		for _, one := range rule[1:] {
			if f, ok := one.([]any); ok {
				filters = true
				to, _ := f[1].(string)
				fits = fits || named && (f[0] == "subpath" && above(to, path) || f[0] == "literal" && to == path)
			}
		}
		if fits || named && !filters {
			decision = rule[0].(string)
		}
	}
	return decision
}

// A path in a profile stays a path, whatever is in its name.
func TestProfile(t *testing.T) {
	const odd = `/Users/me/a "b") (allow file-read* (subpath "/` + "\n" + `\x`
	f := &fence{Read: []string{"/usr", odd}, Write: []string{"/work/tree", "/work/repo", "/work/tree/.git/worktrees/tree", "/dev/null"}, Names: []string{"/private/etc"}, Network: agency.NetworkNone}
	profile := f.profile([]string{"/work/tree/.git", "/work/repo/objects/info"})
	for _, c := range []struct{ operation, path, want string }{
		{"file-read*", "/usr/bin/git", "allow"},
		{"file-write*", "/usr/bin/git", "deny"},
		{"process-exec*", "/usr/bin/git", "allow"},
		{"file-read*", odd + "/file", "allow"},
		{"file-read*", "/Users/me/.ssh/id_ed25519", "deny"},
		{"process-exec*", "/Users/me/bin/tool", "deny"},
		{"file-read*", "/work/tree/main.go", "allow"},
		{"file-write*", "/work/tree/main.go", "allow"},
		{"file-write*", "/work/tree2/main.go", "deny"},
		{"file-write*", "/work/tree/.git", "deny"},
		{"file-read*", "/private/etc", "allow"},
		{"file-read*", "/private/etc/master.passwd", "deny"},
		{"file-write-unlink", "/work/tree", "deny"},
		{"file-write-unlink", "/work/repo/objects", "deny"},
		{"file-write*", "/work/repo/objects/ab/cd", "allow"},
		{"file-write*", "/work/repo/objects/info/alternates", "deny"},
		{"network-outbound", "/work/tree/socket", "allow"},
		{"network-outbound", "/var/run/docker.sock", "deny"},
		{"appleevent-send", "", "deny"},
	} {
		if got := decides(profile, c.operation, c.path); got != c.want {
			t.Errorf("%s of %q: %s, want %s", c.operation, c.path, got, c.want)
		}
	}
	if strings.Contains(profile, "remote ip") {
		t.Error("the network none has rules for addresses")
	}
	if got := decides(f.profile(nil), "file-write*", "/work/tree/main.go"); got != "allow" {
		t.Errorf("without files that are kept: %s", got)
	}
	f.Network = agency.NetworkFull
	if full := f.profile(nil); !strings.Contains(full, "remote ip") || strings.Contains(full, "docker") {
		t.Errorf("the network full: %s", full)
	}
}
