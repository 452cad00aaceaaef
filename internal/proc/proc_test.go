package proc_test

import (
	"testing"

	"agency/internal/proc"
)

const tail = "7 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3"

// names are program names that are hard to parse.
var names = []string{"sh", "a b", "x) R 1 (", "((", "a\nb"}

func FuzzParse(f *testing.F) {
	for _, name := range names {
		f.Add([]byte("42 (" + name + ") S " + tail))
	}
	f.Add([]byte("42 (sh) Z"))
	f.Add([]byte(")("))
	f.Fuzz(func(_ *testing.T, line []byte) {
		_, _ = proc.Parse(line)
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, name := range names {
		got, err := proc.Parse([]byte("42 (" + name + ") Z " + tail + "\n"))
		want := proc.Stat{PID: 42, Parent: 7, Group: 5, Name: name, State: 'Z', Start: 987654, Own: 11, Children: 15, Threads: 1, Resident: 2}
		if got != want || err != nil {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}
