package plan

import (
	"strings"
	"testing"

	"agency"
)

// matches reports, by trying, whether a path matches segments.
func matches(segments []touchSegment, path []string) bool {
	switch {
	case len(segments) == 0:
		return len(path) == 0
	case segments[0].deep:
		return matches(segments[1:], path) || len(path) > 0 && matches(segments, path[1:])
	case len(path) == 0:
		return false
	}
	return matchesName(segments[0].parts, []rune(path[0])) && matches(segments[1:], path[1:])
}

func matchesName(parts []touchPart, name []rune) bool {
	switch {
	case len(parts) == 0:
		return len(name) == 0
	case parts[0].star:
		return matchesName(parts[1:], name) || len(name) > 0 && matchesName(parts, name[1:])
	case len(name) == 0:
		return false
	}
	for _, span := range parts[0].of {
		if span.low <= name[0] && name[0] <= span.high {
			return matchesName(parts[1:], name[1:])
		}
	}
	return false
}

// allPaths returns all paths of up to that many characters of a, b, c and slash.
func allPaths(most int) [][]string {
	var paths [][]string
	var grow func(s string)
	grow = func(s string) {
		if s != "" && !strings.HasSuffix(s, "/") {
			paths = append(paths, strings.Split(s, "/"))
		}
		if len(s) == most {
			return
		}
		for _, c := range "abc/" {
			if c != '/' || s != "" && !strings.HasSuffix(s, "/") {
				grow(s + string(c))
			}
		}
	}
	grow("")
	return paths
}

// meetByTrying reports whether one of the paths matches both patterns.
func meetByTrying(a, b *touch, paths [][]string) bool {
	for _, path := range paths {
		if matches(a.segments, path) && matches(b.segments, path) {
			return true
		}
	}
	return false
}

func TestTouchesMeet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"a.go", "a.go", true},
		{"a.go", "b.go", false},
		{"internal/auth", "internal/auth/login.go", false},
		{"internal/auth", "internal/*", true},
		{"README.md", "**/*.go", false},
		{"docs/", "**/*.go", true},
		{"internal/auth/", "internal/auth/login.go", true},
		{"internal/auth", "internal/authority/login.go", false},
		{"internal/**", "internal/auth/login.go", true},
		{"**/*.go", "docs/*.md", false},
		{"**/*_test.go", "internal/auth/**", true},
		{"**", "anything", true},
		{"src/*.go", "src/auth/login.go", false},
		{"src/*/login.go", "src/auth/*.go", true},
		{"**/a/**/b", "a/b", true},
		{"*a*b", "ab*", true},
		{"*a", "*b", false},
		{"[a-m]*.go", "[n-z]*.go", false},
		{"[!a]x", "ax", false},
		{"[^a]x", "bx", true},
		{"file[0-9].txt", "file?.txt", true},
		{"[]a]x", "]x", true},
		{"[a-]x", "-x", true},
		{"é*", "è*", false},
	} {
		a, problem, _ := parseTouch(test.a)
		if problem != "" {
			t.Fatalf("%s %s", test.a, problem)
		}
		b, problem, _ := parseTouch(test.b)
		if problem != "" {
			t.Fatalf("%s %s", test.b, problem)
		}
		budget := touchBudget
		if got := touchesMeet(a, b, &budget); got != test.want {
			t.Errorf("%s and %s: got %v", test.a, test.b, got)
		}
	}
	for _, bad := range []string{"", "/a", "../a", "a/../b", "./a", "a//b", "a**", "a\\b", "{a,b}", "!a", "[a", "[z-a]", "[]", "a\x00", "a\tb", strings.Repeat("a", longestTouch+1), "\xff", "/"} {
		if _, problem, hint := parseTouch(bad); problem == "" || hint == "" {
			t.Errorf("%q was read", bad)
		}
	}
}

// Plans that would take long to compare are refused: too many patterns of one agent, or too many of
// agents that depend on each other, although those are not compared at all.
func TestTouchesCost(t *testing.T) {
	t.Parallel()
	p := &agency.Plan{MaxParallel: 1, OnFailure: agency.StopOnFailure}
	const agents = 40
	for i := range agents {
		a := agency.PlanAgent{ID: string(rune('a'+i/26)) + string(rune('a'+i%26)), Prompt: "x", Wave: i + 1, DoneWhen: agency.DoneWhenReady, Touches: make([]string, mostTouches)}
		if i > 0 {
			a.After = []string{p.Agents[i-1].ID}
		}
		for j := range a.Touches {
			a.Touches[j] = "*"
		}
		p.Agents = append(p.Agents, a)
	}
	if err := Check(p); err == nil || !strings.Contains(err.Error(), "too many to compare: 40000 patterns") {
		t.Errorf("got %v", err)
	}
	p.Agents = p.Agents[:1]
	if err := Check(p); err != nil {
		t.Error(err)
	}
	p.Agents[0].Touches = append(p.Agents[0].Touches, "*")
	if err := Check(p); err == nil || !strings.Contains(err.Error(), "touches 1001 patterns, more than 1000") {
		t.Errorf("got %v", err)
	}
}

func FuzzTouchesMeet(f *testing.F) {
	for _, seed := range [][2]string{
		{"a/**/b", "a/*"}, {"*a*", "b?c"}, {"[a-b]", "[!b]"}, {"**/a", "b/**"}, {"a", "a/b"}, {"a?", "a/b"}, {"**/a/**", "b/a"}, {"[ab]c", "?[!c]"},
	} {
		f.Add(seed[0], seed[1])
	}
	paths := allPaths(6)
	f.Fuzz(func(t *testing.T, x, y string) {
		a, problem, _ := parseTouch(x)
		if problem != "" {
			return
		}
		b, problem, _ := parseTouch(y)
		if problem != "" {
			return
		}
		budget := touchBudget
		got := touchesMeet(a, b, &budget)
		if budget == touchBudget {
			t.Fatal("the comparison cost nothing")
		}
		if touchesMeet(b, a, &budget) != got {
			t.Fatalf("%q and %q: it depends on the order", x, y)
		}
		if !touchesMeet(a, a, &budget) {
			t.Fatalf("%q does not meet itself", x)
		}
		if got && !strings.HasPrefix(a.prefix, b.prefix) && !strings.HasPrefix(b.prefix, a.prefix) {
			t.Fatalf("%q and %q meet, with the prefixes %q and %q", x, y, a.prefix, b.prefix)
		}
		tried := meetByTrying(a, b, paths)
		if tried && !got {
			t.Fatalf("%q and %q meet, and are said not to", x, y)
		}
		// The converse needs a common path among those that were tried: few characters, and only
		// those of the alphabet.
		if got && !tried && len(x)+len(y) <= 6 && strings.Trim(x+y, "abc?*/") == "" {
			t.Fatalf("%q and %q are said to meet, and no short path matches both", x, y)
		}
	})
}
