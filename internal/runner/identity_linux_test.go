package runner_test

import (
	"testing"

	"agency/internal/runner"
)

func FuzzParseStat(f *testing.F) {
	const tail = " S 7 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3"
	for _, name := range []string{"sh", "a b", "x) R 1 (", "((", "a\nb"} {
		f.Add([]byte("42 (" + name + ")" + tail))
	}
	f.Add([]byte("42 (sh) Z"))
	f.Add([]byte(")("))
	f.Fuzz(func(_ *testing.T, line []byte) {
		_, _, _, _, _ = runner.ParseStat(line)
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sh", "a b", "x) R 1 (", "((", "a\nb"} {
		pid, ppid, start, zombie, err := runner.ParseStat([]byte("42 (" + name + ") Z 7 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3\n"))
		if pid != 42 || ppid != 7 || start != 987654 || !zombie || err != nil {
			t.Errorf("%q: %d %d %d %v %v", name, pid, ppid, start, zombie, err)
		}
	}
}
