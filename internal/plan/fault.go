package plan

import (
	"errors"

	"agency"
)

// Faults are the first faults of a plan, one or more. As an error they stand for the first of them.
type Faults []*agency.Error

// maxFaults is the maximum number of faults that are reported at once.
const maxFaults = 100

// Error returns the message of the first fault.
func (f Faults) Error() string { return f[0].Error() }

// Unwrap returns the first fault.
func (f Faults) Unwrap() error { return f[0] }

// Add adds an error, which may itself be Faults. It reports whether there is room for more.
func (f *Faults) Add(err error) bool {
	if more, ok := errors.AsType[Faults](err); ok {
		*f = append(*f, more...)
	} else if err != nil {
		*f = append(*f, agency.AsError(err))
	}
	*f = (*f)[:min(len(*f), maxFaults)]
	return len(*f) < maxFaults
}

// Err returns the faults as an error, or nil when there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
