package supervisor

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agency"
	"agency/internal/plain"
)

// Marks sets what users and agents put on runs: flags and tags.
type Marks struct {
	store *Records
	views *views
	now   func() time.Time
}

// Flag marks a run as needing attention, with a reason, until it is unflagged. A new reason
// replaces the flag; the same reason changes nothing. by is the id of the requesting run, or
// agency.User. It returns the run and the flag that it had before. The error is E_USAGE for a
// reason without visible characters, and E_PERMISSION_DENIED for a run that would replace the flag
// of another client.
func (m *Marks) Flag(ctx context.Context, ref, reason, by string) (r *agency.Run, was *agency.Flag, err error) {
	if err := checkFlagReason(reason); err != nil {
		return nil, nil, err
	}
	return m.change(ctx, ref, func(r *agency.Run) ([]agency.EventDraft, error) {
		switch {
		case r.Flag != nil && r.Flag.Reason == reason:
			return nil, nil
		case r.Flag != nil && by == string(r.ID) && r.Flag.By != by:
			return nil, agency.Errorf(agency.CodePermissionDenied, "%s was flagged by another caller, and may not change the reason: %s", r.Ref(), r.Flag.Reason).
				WithHint("agency report needs-input")
		}
		r.Flag = &agency.Flag{Reason: reason, By: by, At: m.now().UTC()}
		return []agency.EventDraft{{Type: agency.RunFlagged, Data: r.Flag}}, nil
	})
}

// Unflag removes a run's flag. It returns the run and the flag that it had; nil when there was
// none.
func (m *Marks) Unflag(ctx context.Context, ref, by string) (r *agency.Run, was *agency.Flag, err error) {
	return m.change(ctx, ref, func(r *agency.Run) ([]agency.EventDraft, error) { return takeFlag(r, by), nil })
}

// takeFlag removes a run's flag, if it has one.
func takeFlag(r *agency.Run, by string) []agency.EventDraft {
	if r.Flag == nil {
		return nil
	}
	r.Flag = nil
	return []agency.EventDraft{{Type: agency.RunUnflagged, Data: map[string]any{"by": by}}}
}

// Merge records that the work of a run is in a target, or that it is not any more. It returns the
// run. The second time it writes nothing. The flag of FlagConflict goes when the work is in a
// target.
func (m *Marks) Merge(ctx context.Context, id agency.RunID, merged bool) (*agency.Run, error) {
	changed, _, err := m.change(ctx, string(id), func(r *agency.Run) (drafts []agency.EventDraft, err error) {
		if merged && r.Flag != nil && r.Flag.By == agency.FlaggedByLanding {
			drafts = takeFlag(r, agency.FlaggedByLanding)
		}
		switch {
		case merged == (r.MergedAt != nil):
			return drafts, nil
		case merged:
			r.MergedAt = new(m.now().UTC())
			return append(drafts, agency.EventDraft{Type: agency.RunMerged}), nil
		default:
			r.MergedAt = nil
			return []agency.EventDraft{{Type: agency.RunUnmerged}}, nil
		}
	})
	return changed, err
}

// RecordPR records the pull request of a run, as it is now, and returns the run. With nothing new
// it only records when agency looked.
func (m *Marks) RecordPR(ctx context.Context, ref string, pr *agency.PullRequest) (*agency.Run, error) {
	changed, _, err := m.change(ctx, ref, func(r *agency.Run) ([]agency.EventDraft, error) {
		now := *pr
		now.At = m.now().UTC()
		before := r.PR
		r.PR = &now
		if before != nil {
			was := *before
			if was.At = now.At; was == now {
				return nil, nil
			}
		}
		return []agency.EventDraft{{Type: agency.PRChanged, Data: now}}, nil
	})
	return changed, err
}

// Abandon marks a run as given up, or with undo takes the mark away. Nothing of the run is deleted.
// The error is E_INVALID_STATE for a run that is live, or whose work has landed.
func (m *Marks) Abandon(ctx context.Context, ref string, undo bool, by string) (*agency.Run, error) {
	changed, _, err := m.change(ctx, ref, func(r *agency.Run) ([]agency.EventDraft, error) {
		event := agency.RunAbandoned
		switch {
		case r.Abandoned == !undo:
			return nil, nil
		case undo:
			event = agency.RunUnabandoned
		case !r.Attempt.State.Final():
			return nil, agency.Errorf(agency.CodeInvalidState, "%s has not ended, and only an ended run can be abandoned", r.Ref()).
				WithHint("agency stop %s", r.Ref())
		case r.MergedAt != nil:
			return nil, agency.Errorf(agency.CodeInvalidState, "%s has landed", r.Ref()).WithHint("its landings, and how to take one back: agency review %s", r.Ref())
		}
		r.Abandoned = !undo
		return []agency.EventDraft{{Type: event, Data: map[string]any{"by": by}}}, nil
	})
	return changed, err
}

// beginAgain takes away the marks that do not hold for a new attempt of a run.
func beginAgain(r *agency.Run) []agency.EventDraft {
	drafts := takeFlag(r, agency.Daemon)
	if r.MergedAt != nil {
		r.MergedAt = nil
		drafts = append(drafts, agency.EventDraft{Type: agency.RunUnmerged})
	}
	if r.Abandoned {
		r.Abandoned = false
		drafts = append(drafts, agency.EventDraft{Type: agency.RunUnabandoned, Data: map[string]any{"by": agency.Daemon}})
	}
	return drafts
}

// FlagChecks flags a run whose checks do not pass, unless the user or an agent has flagged it.
func (m *Marks) FlagChecks(ctx context.Context, id agency.RunID, reason string) error {
	return m.flagWork(ctx, string(id), reason, agency.FlaggedByChecks)
}

// FlagConflict flags a run whose landing was refused by a conflict, unless the user or an agent has
// flagged it. The flag goes when the run lands.
func (m *Marks) FlagConflict(ctx context.Context, ref, reason string) error {
	return m.flagWork(ctx, ref, reason, agency.FlaggedByLanding)
}

func (m *Marks) flagWork(ctx context.Context, ref, reason, by string) error {
	if all := []rune(reason); len(all) > agency.FlagReasonLimit {
		reason = string(all[:agency.FlagReasonLimit])
	}
	_, _, err := m.change(ctx, ref, func(r *agency.Run) ([]agency.EventDraft, error) {
		if f := r.Flag; f != nil && (f.By != agency.FlaggedByChecks && f.By != agency.FlaggedByLanding || f.By == by && f.Reason == reason) {
			return nil, nil
		}
		r.Flag = &agency.Flag{Reason: reason, By: by, At: m.now().UTC()}
		return []agency.EventDraft{{Type: agency.RunFlagged, Data: r.Flag}}, nil
	})
	return err
}

// UnflagChecks removes the flag of FlagChecks, if the run has it.
func (m *Marks) UnflagChecks(ctx context.Context, id agency.RunID) error {
	_, _, err := m.change(ctx, string(id), func(r *agency.Run) ([]agency.EventDraft, error) {
		if r.Flag == nil || r.Flag.By != agency.FlaggedByChecks {
			return nil, nil
		}
		return takeFlag(r, agency.FlaggedByChecks), nil
	})
	return err
}

// change does not wait for other operations on the run: a stop or resume can take long.
func (m *Marks) change(ctx context.Context, ref string, change func(r *agency.Run) ([]agency.EventDraft, error)) (changed *agency.Run, was *agency.Flag, err error) {
	r, err := m.store.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	changed, err = m.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		was = r.Flag
		return change(r)
	})
	if err != nil {
		return nil, nil, err
	}
	if changed.RemovedAt == nil {
		m.views.write(ctx, changed)
	}
	return changed, was, nil
}

// Tag adds and removes tags of a run. It returns the run.
func (m *Marks) Tag(ctx context.Context, ref string, add, remove []string) (*agency.Run, error) {
	for _, tag := range add {
		if err := agency.CheckWord("tag", tag); err != nil {
			return nil, err
		}
	}
	r, release, err := m.store.Hold(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer release()
	changed, err := m.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		tags := slices.DeleteFunc(slices.Clone(r.Tags), func(tag string) bool { return slices.Contains(remove, tag) })
		for _, tag := range add {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
		if slices.Equal(tags, r.Tags) {
			return nil, nil
		}
		r.Tags = tags
		return []agency.EventDraft{{Type: agency.RunTagged, Data: map[string]any{"tags": tags}}}, nil
	})
	if err == nil && changed.RemovedAt == nil {
		m.views.write(ctx, changed)
	}
	return changed, err
}

// checkFlagReason returns E_USAGE for a reason that has no visible characters or is too long.
func checkFlagReason(reason string) error {
	if strings.TrimSpace(plain.Visible(reason)) == "" {
		return agency.Errorf(agency.CodeUsage, "a flag needs a reason").WithHint(`for example: agency flag RUN "the migration needs a second look"`)
	}
	if n := utf8.RuneCountInString(reason); n > agency.FlagReasonLimit {
		return agency.Errorf(agency.CodeUsage, "the reason has %d characters, and at most %d are allowed", n, agency.FlagReasonLimit).
			WithHint("write it to a file in the worktree and give its name")
	}
	return nil
}
