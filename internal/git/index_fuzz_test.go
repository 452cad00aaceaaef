package git_test

import (
	"crypto/sha1"
	"strings"
	"testing"

	"agency/internal/git"
)

// An agent writes its index, with a checksum that is right.
func FuzzReadIndex(f *testing.F) {
	entry := strings.Repeat("\x00", 60) + "\x00\x01a\x00"
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + entry))
	f.Add([]byte("DIRC\x00\x00\x00\x03\x00\x00\x00\x02" + entry + entry + "TREE\x00\x00\x00\x01x"))
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff" + entry + "TREE\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha1.Sum(body)
		if git.ReadsIndex(append(body, sum[:]...)) && !strings.HasPrefix(string(body), "DIRC") {
			t.Errorf("read %q", body)
		}
	})
}
