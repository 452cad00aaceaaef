package supervisor

import (
	"encoding/hex"

	"github.com/google/uuid"
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

// Read fills b. It implements io.Reader.
func (r Random) Read(b []byte) (int, error) {
	r(b)
	return len(b), nil
}

// uuid returns a UUID, version 4.
func (r Random) uuid() string { return uuid.Must(uuid.NewRandomFromReader(r)).String() }
