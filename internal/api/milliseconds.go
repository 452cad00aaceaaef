package api

import (
	"math"
	"time"

	"agency"
)

// Milliseconds returns the duration that a key of a request gives in milliseconds. A negative or
// too long one is E_USAGE.
func Milliseconds(key string, ms int64) (time.Duration, error) {
	if most := int64(math.MaxInt64 / time.Millisecond); ms < 0 || ms > most {
		return 0, agency.Errorf(agency.CodeUsage, "%s is %d, not a number of milliseconds from 0 to %d", key, ms, most)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
