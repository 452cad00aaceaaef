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

	CheckFlagReason = checkFlagReason
)

// Settle settles a run as somebody read it.
func (s *Supervisor) Settle(ctx context.Context, r *agency.Run) error {
	_, err := s.settler.settle(ctx, r)
	return err
}

// Rescan looks at everything that no event told of.
func (s *Supervisor) Rescan() { s.rescan() }
