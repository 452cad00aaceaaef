package git_test

import (
	"strconv"
	"strings"
	"testing"

	"agency/internal/git"
)

func FuzzParseSnapshots(f *testing.F) {
	const prefix = "refs/agency/snapshots/r_1/"
	f.Add(prefix + "1\x00abc\x001700000000\x00before a merge\n")
	f.Add(prefix + "01\x00abc\x00-1\x00\n" + prefix + "x\x00\x00\x00\n" + "refs/heads/main\x00abc\x001\x00s")
	f.Add(prefix + "99999999999999999999\x00abc\x009223372036854775807\x00s\n")
	f.Fuzz(func(t *testing.T, out string) {
		for _, s := range git.ParseSnapshots(out, prefix) {
			if s.Number < 1 || s.Ref != prefix+strconv.Itoa(s.Number) || strings.ContainsAny(s.Ref+s.Commit+s.Message, "\n\x00") {
				t.Errorf("got %+v", s)
			}
		}
	})
}
