package supervisor

import (
	"context"

	"agency"
)

// The parts that decide something by themselves, for tests of all their cases.
var (
	RunnerEnv   = runnerEnv
	MetaYAML    = metaYAML
	Fingerprint = fingerprint
	NewReports  = newReports

	RecordProblem = recordProblem
)

// Keyed is a set of locks by name.
type Keyed struct{ locks keyed }

// Lock takes the named lock.
func (k *Keyed) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return k.locks.lock(ctx, name)
}

// Len counts the locks that exist.
func (k *Keyed) Len() int {
	k.locks.mu.Lock()
	defer k.locks.mu.Unlock()
	return len(k.locks.locks)
}

// Settle settles a run as somebody read it.
func (s *Supervisor) Settle(ctx context.Context, r *agency.Run) error {
	_, err := s.settle(ctx, r)
	return err
}

// Rescan looks at everything that no event told of.
func (s *Supervisor) Rescan() { s.rescan() }
