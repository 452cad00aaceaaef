package supervisor

import (
	"context"

	"agency"
)

// Internals with many cases, for direct tests.
var (
	RunnerEnv   = runnerEnv
	MetaYAML    = metaYAML
	Fingerprint = fingerprint
	UniqueNames = uniqueNames
	Attached    = attached

	CheckFlagReason = checkFlagReason
)

// Settle settles a run from a record that may be old.
func (s *Supervisor) Settle(ctx context.Context, r *agency.Run) error {
	_, err := s.settler.settle(ctx, r)
	return err
}

// Rescan looks for changes without an event.
func (s *Supervisor) Rescan() { s.monitor.rescan() }
