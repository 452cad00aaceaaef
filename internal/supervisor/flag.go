package supervisor

import (
	"context"

	"agency"
)

// FlagRun has a run need attention, for a reason, until the flag is taken away. A flag with another reason takes the place of the one
// before; the same reason changes nothing. by is the id of the run that asks, or agency.User. It returns the run, and the flag that it
// had until now. A reason that nobody could see is E_USAGE; a run that would take the place of another's flag on it is
// E_PERMISSION_DENIED.
func (s *Supervisor) FlagRun(ctx context.Context, ref, reason, by string) (r *agency.Run, was *agency.Flag, err error) {
	if err := agency.CheckFlagReason(reason); err != nil {
		return nil, nil, err
	}
	return s.changeFlag(ctx, ref, func(r *agency.Run) ([]agency.News, error) {
		switch {
		case r.Flag != nil && r.Flag.Reason == reason:
			return nil, nil
		case r.Flag != nil && by == string(r.ID) && r.Flag.By != by:
			return nil, agency.Errorf(agency.CodePermissionDenied, "%s is flagged by somebody else, and may not say for what: %s", r.Ref(), r.Flag.Reason).
				WithHint("agency report needs-input")
		}
		r.Flag = &agency.Flag{Reason: reason, By: by, At: s.Now().UTC()}
		return []agency.News{{Type: agency.RunFlagged, Data: r.Flag}}, nil
	})
}

// UnflagRun takes a run's flag away. It returns the run, and the flag that it had: nil when there was none.
func (s *Supervisor) UnflagRun(ctx context.Context, ref, by string) (r *agency.Run, was *agency.Flag, err error) {
	return s.changeFlag(ctx, ref, func(r *agency.Run) ([]agency.News, error) { return takeFlag(r, by), nil })
}

// takeFlag takes away a run's flag, if it has one.
func takeFlag(r *agency.Run, by string) []agency.News {
	if r.Flag == nil {
		return nil
	}
	r.Flag = nil
	return []agency.News{{Type: agency.RunUnflagged, Data: map[string]any{"by": by}}}
}

// changeFlag waits for nobody who acts on the run: to stop or resume it can take long.
func (s *Supervisor) changeFlag(ctx context.Context, ref string, change func(r *agency.Run) ([]agency.News, error)) (changed *agency.Run, was *agency.Flag, err error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	changed, err = s.Records.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.News, error) {
		was = r.Flag
		return change(r)
	})
	if err != nil {
		return nil, nil, err
	}
	if changed.RemovedAt == nil {
		s.writeViews(ctx, changed)
	}
	return changed, was, nil
}
