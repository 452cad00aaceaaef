package duration

import (
	"context"
	"fmt"
	"time"
)

// over is the error of an operation whose time is over.
type over struct {
	what  string
	limit time.Duration
}

// Over returns the error of an operation whose time is over, as the cause of the end of its context.
// It is context.DeadlineExceeded, in words for users: what did not happen, and the limit.
func Over(what string, limit time.Duration) error { return &over{what, limit} }

func (o *over) Error() string { return fmt.Sprintf("%s within %s", o.what, Text(o.limit)) }

func (*over) Is(target error) bool { return target == context.DeadlineExceeded }
