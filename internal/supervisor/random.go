package supervisor

import (
	"encoding/hex"
	"strings"
)

// Random fills a slice with random bytes. It never fails.
type Random func([]byte)

func (r Random) bytes(n int) []byte {
	b := make([]byte, n)
	r(b)
	return b
}

// token returns a secret of 32 hexadecimal digits.
func (r Random) token() string { return hex.EncodeToString(r.bytes(16)) }

// uuid returns a UUID, version 4.
func (r Random) uuid() string {
	b := r.bytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
