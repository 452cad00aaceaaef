package plan

import (
	"errors"

	"agency"
)

// Faults are the first things that are wrong with a plan, one or more. As one error they are the first of them.
type Faults []*agency.Error

// maxFaults is how many things that are wrong with a plan are reported at once.
const maxFaults = 5

// Error is the message of the first fault.
func (f Faults) Error() string { return f[0].Error() }

// Unwrap is the first fault.
func (f Faults) Unwrap() error { return f[0] }

// Add takes an error for one more fault, or for those that it is. It reports whether there is room for others.
func (f *Faults) Add(err error) bool {
	if more, ok := errors.AsType[Faults](err); ok {
		*f = append(*f, more...)
	} else if err != nil {
		*f = append(*f, agency.AsError(err))
	}
	*f = (*f)[:min(len(*f), maxFaults)]
	return len(*f) < maxFaults
}

// Err is nil when there is no fault.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
